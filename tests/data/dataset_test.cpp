// Data sets and the loader: which samples come when, and every refusal with its message.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/data/dataset.hpp>

#include "support/errors.hpp"

namespace {

using wengert::Index;
using wengert::IndexError;
using wengert::ShapeError;
using wengert::Tensor;
using wengert::ValueError;
using wengert::data::Dataset;
using wengert::data::Loader;
using wengert::data::LoaderOptions;

/// Sample i is x = (10 i, 10 i + 1), y = i.
Dataset<float, std::int64_t> counted(Index n) {
  Tensor<float> x({n, 2});
  Tensor<std::int64_t> y({n});
  for (Index i = 0; i < n; ++i) {
    x.fresh_data()[2 * i] = static_cast<float>(10 * i);
    x.fresh_data()[2 * i + 1] = static_cast<float>(10 * i + 1);
    y.fresh_data()[i] = i;
  }
  return {x, y};
}

/// The sizes of the batches of one epoch, and the numbers of the samples in the order they come; x must fit
/// y.
struct Epoch {
  std::vector<Index> sizes;
  std::vector<std::int64_t> order;

  explicit Epoch(auto& loader) {
    for (const auto& [x, y] : loader) {
      EXPECT_EQ(x.shape(), (wengert::Shape{y.size(), 2}));
      sizes.push_back(y.size());
      for (Index i = 0; i < y.size(); ++i) {
        order.push_back(y.at(i));
        EXPECT_EQ(x.at(i, 0), static_cast<float>(10 * y.at(i)));
        EXPECT_EQ(x.at(i, 1), static_cast<float>(10 * y.at(i) + 1));
      }
    }
  }
  std::vector<std::int64_t> sorted() const {
    std::vector<std::int64_t> s = order;
    std::sort(s.begin(), s.end());
    return s;
  }
};

std::vector<std::int64_t> counting(Index n) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(Dataset, GathersRowsInTheOrderAsked) {
  const auto data = counted(5);
  EXPECT_EQ(data.size(), 5);
  const std::vector<Index> rows{4, 0, 4};
  const auto [x, y] = data.gather(rows);
  EXPECT_EQ(x.to_vector(), (std::vector<float>{40, 41, 0, 1, 40, 41}));
  EXPECT_EQ(y.to_vector(), (std::vector<std::int64_t>{4, 0, 4}));
}

TEST(Dataset, ReadsTensorsWithGaps) {
  Tensor<float> columns({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor<float> x(columns.buffer(), {3, 2}, {1, 3}, 0);  // its transpose
  const Dataset<float, int> data(x, Tensor<int>({3}, {7, 8, 9}));
  const std::vector<Index> rows{2};
  EXPECT_EQ(data.gather(rows).x.to_vector(), (std::vector<float>{3, 6}));
}

TEST(Dataset, GivesRangesAsViews) {
  const auto data = counted(5);
  const auto [x, y] = data.range(1, 3);
  EXPECT_EQ(x.to_vector(), (std::vector<float>{10, 11, 20, 21}));
  EXPECT_EQ(y.to_vector(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_TRUE(x.shares_buffer(data.x()));
  EXPECT_EQ(data.range(5, 5).x.shape(), (wengert::Shape{0, 2}));
}

TEST(Dataset, RefusesWhatDoesNotFit) {
  using D = Dataset<float, std::int64_t>;
  EXPECT_ERROR(
      (D(Tensor<float>({3, 2}), Tensor<std::int64_t>({4}))), ShapeError,
      "dataset: numbers of samples differ; x is (3, 2), y is (4); expected one row a sample in both");
  EXPECT_ERROR((D(Tensor<float>(wengert::Shape{}), Tensor<std::int64_t>(wengert::Shape{}))), ShapeError,
               "dataset: numbers of samples differ; x is (), y is (); expected one row a sample in both");
  const auto data = counted(3);
  const std::vector<Index> high{0, 3}, low{-1};
  EXPECT_ERROR(data.gather(high), IndexError,
               "dataset: sample 3 at position 1 is out of range; x is (3, 2); expected 0..2");
  EXPECT_ERROR(data.gather(low), IndexError,
               "dataset: sample -1 at position 0 is out of range; x is (3, 2); expected 0..2");
  EXPECT_ERROR(counted(0).gather(high), IndexError,
               "dataset: sample 0 at position 0 is out of range; x is (0, 2); expected no sample");
  EXPECT_ERROR(data.range(2, 4), IndexError,
               "dataset: samples 2..4 are out of range; x is (3, 2); expected 0 <= begin <= end <= 3");
  EXPECT_ERROR(data.range(2, 1), IndexError,
               "dataset: samples 2..1 are out of range; x is (3, 2); expected 0 <= begin <= end <= 3");
  EXPECT_ERROR(data.range(-1, 1), IndexError,
               "dataset: samples -1..1 are out of range; x is (3, 2); expected 0 <= begin <= end <= 3");
}

TEST(Loader, HandsOutEverySampleOnceAndAShortBatchLast) {
  Loader loader(counted(10), {.batch = 4, .seed = 3});
  EXPECT_EQ(loader.batches(), 3);
  EXPECT_EQ(loader.samples(), 10);
  for (int epoch = 0; epoch < 5; ++epoch) {
    const Epoch e(loader);
    EXPECT_EQ(e.sizes, (std::vector<Index>{4, 4, 2}));
    EXPECT_EQ(e.sorted(), counting(10));
  }
}

TEST(Loader, DropsTheShortBatchWhenAsked) {
  Loader loader(counted(10), {.batch = 4, .drop_last = true});
  EXPECT_EQ(loader.batches(), 2);
  const Epoch e(loader);
  EXPECT_EQ(e.sizes, (std::vector<Index>{4, 4}));
  const auto s = e.sorted();
  EXPECT_EQ(std::adjacent_find(s.begin(), s.end()), s.end());

  Loader even(counted(8), {.batch = 4, .drop_last = true});
  EXPECT_EQ(even.batches(), 2);
  Loader small(counted(3), {.batch = 4, .drop_last = true});
  EXPECT_EQ(small.batches(), 0);
  EXPECT_TRUE(Epoch(small).sizes.empty());
}

TEST(Loader, TakesABatchOfAnySize) {
  for (const Index batch : {Index{10}, Index{11}, std::numeric_limits<Index>::max()}) {
    Loader all(Dataset<float, Index>(Tensor<float>({10, 2}), Tensor<Index>({10})), {.batch = batch});
    EXPECT_EQ(all.batches(), 1) << batch;
    for (const auto& [x, y] : all) EXPECT_EQ(y.dim(0), 10) << batch;
  }
}

TEST(Loader, ShufflesAnewEachEpochByItsSeedAlone) {
  const LoaderOptions options{.batch = 7, .seed = 5};
  Loader a(counted(40), options), b(counted(40), options);
  const Epoch a0(a), a1(a), b0(b), b1(b);
  EXPECT_EQ(a0.order, b0.order);
  EXPECT_EQ(a1.order, b1.order);
  EXPECT_NE(a0.order, a1.order);
  EXPECT_NE(a0.order, counting(40));

  Loader other(counted(40), {.batch = 7, .seed = 6});
  EXPECT_NE(Epoch(other).order, a0.order);
  Loader wider(counted(40), {.batch = 40, .seed = 5});  // the order does not depend on the batch
  EXPECT_EQ(Epoch(wider).order, a0.order);
}

TEST(Loader, GoesOnAtAnyEpoch) {
  Loader through(counted(20), {.batch = 6, .seed = 1});
  EXPECT_EQ(through.epoch(), 0u);
  const Epoch first(through), second(through), third(through);
  EXPECT_EQ(through.epoch(), 3u);
  Loader restarted(counted(20), {.batch = 6, .seed = 1});
  restarted.set_epoch(2);
  EXPECT_EQ(Epoch(restarted).order, third.order);
  restarted.set_epoch(0);
  EXPECT_EQ(Epoch(restarted).order, first.order);
}

TEST(Loader, KeepsTheOrderOfTheDataWhenNotAskedToShuffle) {
  const auto data = counted(5);
  Loader loader(data, {.batch = 2, .shuffle = false});
  EXPECT_EQ(Epoch(loader).order, counting(5));
  EXPECT_EQ(Epoch(loader).order, counting(5));
  EXPECT_TRUE((*loader.begin()).x.shares_buffer(data.x())) << "such batches need no copy";
}

TEST(Loader, PutsEachSampleInEachPlaceAboutEquallyOften) {
  Loader loader(counted(4), {.batch = 4, .seed = 9});
  int first[4] = {};
  constexpr int epochs = 4000;
  for (int e = 0; e < epochs; ++e) ++first[Epoch(loader).order[0]];
  for (const int n : first) EXPECT_NEAR(n, epochs / 4, 140) << "five standard deviations";
}

TEST(Loader, BearsEmptyDataAndRefusesEmptyBatches) {
  Loader loader(counted(0), {.batch = 4});
  EXPECT_EQ(loader.batches(), 0);
  EXPECT_TRUE(Epoch(loader).sizes.empty());
  EXPECT_ERROR(Loader(counted(3), {.batch = 0}), ValueError, "loader: batch is 0; expected at least 1");
  EXPECT_ERROR(Loader(counted(3), {.batch = -2}), ValueError, "loader: batch is -2; expected at least 1");
}

TEST(Loader, OutlivesTheDatasetItWasMadeFrom) {
  auto data = std::make_unique<Dataset<float, std::int64_t>>(counted(6));
  Loader loader(*data, {.batch = 4});
  data.reset();
  EXPECT_EQ(Epoch(loader).sorted(), counting(6));
}

}  // namespace
