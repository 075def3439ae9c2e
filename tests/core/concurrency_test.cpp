// Many threads, each with its own tape and store, over shared read-only parameters; tensors, their buffers
// and their places handed from thread to thread. Runs under the thread sanitizer.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "support/toy.hpp"

using namespace wengert;

namespace {

Tensor<double> vector_of(Index n, double first) {
  Tensor<double> x({n});
  double* p = x.mutable_data();
  for (Index i = 0; i < n; ++i) p[i] = first + 0.25 * static_cast<double>(i);
  return x;
}

/// The gradients of `steps` losses of one thread's data, added up.
std::vector<double> train(const Tensor<double>& w, const Tensor<double>& v, double data, int steps) {
  GradStore grads;
  for (int i = 0; i < steps; ++i) {
    const Tensor<double> x = vector_of(w.size(), data + i);
    backward(toy::dot(toy::mul(toy::mul(w, x), v), x), grads);
  }
  std::vector<double> out = grads[w].to_vector();
  const std::vector<double> dv = grads[v].to_vector();
  out.insert(out.end(), dv.begin(), dv.end());
  return out;
}

TEST(Concurrency, EightThreadsTrainOverSharedParameters) {
  constexpr int threads = 8, steps = 40;
  Tensor<double> w = vector_of(33, 1), v = vector_of(33, -2);
  w.requires_grad(true);
  v.requires_grad(true);
  std::vector<std::vector<double>> expected, got(threads);
  for (int t = 0; t < threads; ++t) expected.push_back(train(w, v, t, steps));
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&, t] { got[static_cast<std::size_t>(t)] = train(w, v, t, steps); });
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(got, expected) << "the same bits as one after the other";
}

TEST(Concurrency, HandlesOfSharedLeavesAreCopiedAndDroppedAnywhere) {
  Tensor<double> w = vector_of(8, 1);
  w.requires_grad(true);
  std::vector<std::thread> workers;
  for (int t = 0; t < 8; ++t)
    workers.emplace_back([w] {
      for (int i = 0; i < 200; ++i) {
        Tensor<double> copy = w, input = vector_of(3, i);
        input.requires_grad(true);  // leaf numbers are given out and taken back
        const Tensor<double> other = std::move(copy);
        ASSERT_EQ(other.data()[1], 1.25);
      }
    });
  for (std::thread& worker : workers) worker.join();
}

/// Recorded results that one thread makes and another reads and drops.
class Channel {
 public:
  void put(Tensor<double> x) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return queue_.size() < 16; });
    queue_.push_back(std::move(x));
    not_empty_.notify_one();
  }
  Tensor<double> take() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return !queue_.empty(); });
    Tensor<double> x = std::move(queue_.front());
    queue_.pop_front();
    not_full_.notify_one();
    return x;
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_full_, not_empty_;
  std::deque<Tensor<double>> queue_;
};

TEST(Concurrency, ResultsDroppedOnAnotherThreadLeaveMemoryFlat) {
  constexpr int passes = 10'000;
  Tensor<double> w = vector_of(64, 1);
  w.requires_grad(true);
  Channel channel;
  double seen = 0;
  std::thread reader([&] {
    for (;;) {
      const Tensor<double> y = channel.take();
      if (y.empty()) return;
      const Tensor<double> copy = y;
      seen += copy.data()[0];
    }
  });
  Tape& tape = Tape::current();
  std::size_t bytes = 0, requests = 0;
  for (int i = 0; i < passes; ++i) {
    channel.put(toy::mul(toy::scale(w, 2.0), w));
    if (i == passes / 10) {
      bytes = tape.bytes();
      requests = pool_stats().system_requests;
    }
  }
  channel.put(Tensor<double>());
  reader.join();
  EXPECT_EQ(seen, 2.0 * passes);
  EXPECT_LE(tape.bytes(), 4 * bytes) << "at most what is in flight";
  EXPECT_LE(pool_stats().system_requests, 4 * requests + 64);
  { const Tensor<double> last = toy::scale(w, 1.0); }  // the next record learns of drops elsewhere
  EXPECT_EQ(tape.size(), 0U);
  GradStore grads;
  backward(toy::dot(w, w.detach()), grads);
  EXPECT_EQ(grads[w].to_vector(), w.to_vector());
}

TEST(Concurrency, LeafOfARecordThatDiedElsewhereIsRecordedAnew) {
  Tensor<double> w = vector_of(4, 1);
  w.requires_grad(true);
  GradStore grads;
  for (int i = 0; i < 3; ++i) {
    // The only record that refers to w's slot dies on another thread, and is heard of while w is recorded.
    std::thread([y = toy::scale(w, 2.0)]() mutable { y = Tensor<double>(); }).join();
    const Tensor<double> y = toy::scale(w, 3.0);
    ASSERT_EQ(Tape::current().size(), 1U);
    backward(toy::dot(y, w.detach()), grads);
    EXPECT_EQ(grads[w].data()[0], 3.0);
    grads.zero();
  }
}

TEST(Concurrency, TensorsOutliveTheThreadThatRecordedThem) {
  std::vector<Tensor<double>> kept(8);
  Tensor<double> w = vector_of(5, 1);
  w.requires_grad(true);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> workers;
    for (std::size_t t = 0; t < kept.size(); ++t)
      workers.emplace_back([&, t] { kept[t] = toy::mul(w, toy::scale(w, static_cast<double>(t))); });
    for (std::thread& worker : workers) worker.join();
    for (std::size_t t = 0; t < kept.size(); ++t)
      ASSERT_EQ(kept[t].data()[0], static_cast<double>(t)) << "round " << round;
    if (round % 2 == 0) kept.assign(8, Tensor<double>());
  }
}

TEST(Concurrency, StoresAndTapesOfThreadsThatComeAndGo) {
  Tensor<double> w = vector_of(5, 1);
  w.requires_grad(true);
  GradStore total;
  std::mutex mutex;
  std::vector<std::thread> workers;
  for (int t = 0; t < 16; ++t)
    workers.emplace_back([&] {
      GradStore mine;
      backward(toy::dot(toy::scale(w, 2.0), w.detach()), mine);
      const Tensor<double> g = mine[w];
      const std::lock_guard lock(mutex);
      backward(w, g, total);  // a store handed from owner to owner
    });
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(total[w].data()[1], 16 * 2 * 1.25);
}

}  // namespace
