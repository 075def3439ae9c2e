// Printed tensors and tapes, character by character.
#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/kernels/dual.hpp>
#include <wengert/ops/create.hpp>
#include <wengert/ops/join.hpp>
#include <wengert/ops/view.hpp>
#include <wengert/ops/view_expand.hpp>
#include <wengert/ops/view_slice.hpp>
#include <wengert/tools/print.hpp>
#include <wengert/tools/print_tape.hpp>

namespace {

using namespace wengert;

TEST(Print, AlignsColumnsAndSharesOneNotation) {
  EXPECT_EQ(to_string(tensor<float>({{1, 2.5}, {-3, 0}})), "float32 (2, 2)\n[[ 1.0,  2.5],\n [-3.0,  0.0]]");
  EXPECT_EQ(to_string(tensor<double>({1, 2, 30})), "float64 (3) [ 1.,  2., 30.]");
  EXPECT_EQ(to_string(tensor<float>({0.1, 1.0 / 3})), "float32 (2) [0.1000, 0.3333]");
  EXPECT_EQ(to_string(tensor<float>({1, NAN, -INFINITY})), "float32 (3) [  1.,  nan, -inf]");
  EXPECT_EQ(to_string(tensor<float>({0, -0.0})), "float32 (2) [ 0., -0.]");
}

TEST(Print, IsScientificWhereNumbersAreLargeSmallOrFarApart) {
  EXPECT_EQ(to_string(tensor<float>({1e-5, 2.5e-3})), "float32 (2) [1.0e-05, 2.5e-03]");
  EXPECT_EQ(to_string(tensor<double>({1e8})), "float64 (1) [1.e+08]");
  EXPECT_EQ(to_string(tensor<double>({1, 1001})), "float64 (2) [1.000e+00, 1.001e+03]");
  EXPECT_EQ(to_string(tensor<double>({1, 1000})), "float64 (2) [   1., 1000.]");
  EXPECT_EQ(to_string(scalar(1e300)), "float64 () 1.e+300");
}

TEST(Print, KnowsIntegersBytesBoolsAndDuals) {
  EXPECT_EQ(to_string(tensor<std::int64_t>({{1, -20}, {300, 4}})),
            "int64 (2, 2)\n[[  1, -20],\n [300,   4]]");
  EXPECT_EQ(to_string(tensor<Byte>({1, 0, 255})), "uint8 (3) [  1,   0, 255]");
  EXPECT_EQ(to_string(tensor<bool>({true, false})), "bool (2) [ true, false]");
  Tensor<kernels::Dual<float>> d({1});
  d.fill(kernels::Dual<float>(2.5f));
  EXPECT_EQ(to_string(d), "scalar (1) [2.5]");
}

TEST(Print, KnowsRankZeroEmptyAndStridedTensors) {
  EXPECT_EQ(to_string(scalar(3.25f)), "float32 () 3.25");
  EXPECT_EQ(to_string(zeros({0, 3})), "float32 (0, 3) []");
  EXPECT_EQ(to_string(transpose(tensor<int>({{1, 2}, {3, 4}}))), "int32 (2, 2)\n[[1, 3],\n [2, 4]]");
  EXPECT_EQ(to_string(slice(arange(10), 0, 1, 10, 4)), "int32 (3) [1, 5, 9]");
  EXPECT_EQ(to_string(reshape(arange(8), {2, 2, 2})),
            "int32 (2, 2, 2)\n[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]");
}

TEST(Print, ElidesLargeTensors) {
  EXPECT_EQ(to_string(arange(1001)), "int32 (1001) [   0,    1,    2, ...,  998,  999, 1000]");
  EXPECT_EQ(to_string(expand(scalar(1), {2000, 2})),
            "int32 (2000, 2)\n[[1, 1],\n [1, 1],\n [1, 1],\n ...,\n [1, 1],\n [1, 1],\n [1, 1]]");
  EXPECT_EQ(to_string(arange(5), {.threshold = 4, .edge_items = 1}), "int32 (5) [0, ..., 4]");
  EXPECT_EQ(to_string(tensor<double>({1.0 / 3}), {.precision = 2}), "float64 (1) [0.33]");
}

TEST(Print, WrapsLongRows) {
  EXPECT_EQ(to_string(arange(8), {.width = 12}), "int32 (8)\n[0, 1, 2, 3,\n 4, 5, 6, 7]");
}

TEST(Print, GoesToStreams) {
  std::ostringstream out;
  out << tensor<int>({1, 2}) << '!';
  EXPECT_EQ(out.str(), "int32 (2) [1, 2]!");
}

TEST(PrintTape, ShowsOneLineARecord) {
  auto w = ones({2, 2}), b = ones({1, 2});
  w.requires_grad(true);
  b.requires_grad(true);
  Tensor<float> y;
  {
    const auto t = transpose(w);
    y = slice(concat({t, b, ones({1, 2})}), 0, 1);
  }
  const auto unnamed = print_tape({{"weight", w}});
  EXPECT_NE(unnamed.find("<- weight\n"), std::string::npos) << unnamed;
  EXPECT_NE(unnamed.find(", leaf "), std::string::npos) << unnamed;
  // Slots are numbered as they come up: 0 w, 1 its transpose, 2 b, 3 and 4 the results.
  EXPECT_EQ(print_tape({{"weight", w}, {"bias", b}}),
            "0  transpose  %1 (2, 2) <- weight\n"
            "1  concat     %3 (4, 2) <- %1, bias, const\n"
            "2  slice      %4 (3, 2) <- %3\n");
  y = Tensor<float>();
  EXPECT_EQ(print_tape(), "");
}

}  // namespace
