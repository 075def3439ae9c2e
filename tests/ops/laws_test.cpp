// What holds for every operator, whatever it computes: how gradients add up, what an unused, constant or
// repeated operand gets, what steps, faults and dropped results leave behind, what writes and threads change.
#include <gtest/gtest.h>

#include "cases/operands.hpp"
#include "cases/suites.hpp"
#include "support/heap_counter.hpp"
#include "support/toy.hpp"

namespace cases {
namespace {

using wengert::GradStore;
using wengert::NoGrad;
using wengert::Tape;

class Operators : public RowTest {};
class DifferentiableOperators : public RowTest {};
class OperatorsWithFaults : public RowTest {};
class OperatorsAtWork : public RowTest {};
CASES_SUITE(Operators, [](const Case&) { return true; });
CASES_SUITE(DifferentiableOperators, [](const Case& c) { return c.differentiable; });
CASES_SUITE(OperatorsWithFaults, [](const Case& c) { return !c.faults.empty(); });
CASES_SUITE(OperatorsAtWork, [](const Case& c) { return !c.bench.empty(); });

constexpr double same_bits = -1;

Tensor<double> tensor(const Array& a) { return tensor_of<double>(a, Layout::contiguous); }
Tensor<double>& get(Any& x) { return std::get<Tensor<double>>(x); }
Tensor<double> call(const Case& c, std::span<const Any> x) {
  return std::get<Tensor<double>>(c.in_double(x));
}
/// sum(y * dy), so that losses of one element can be added.
Tensor<double> loss_of(const Tensor<double>& y, std::uint32_t seed) {
  return toy::dot(y, tensor(seed_for(y.shape(), seed)));
}
/// The gradients of sum(f(x) * seed_for(seed)) for operands that are leaves.
std::vector<std::optional<Array>> expected_gradients(const Case& c, const Anys& x, std::uint32_t seed) {
  const Array dy = seed_for(call(c, x).shape(), seed);
  return run<double>(c, x, &dy).dx;
}
std::vector<std::optional<Array>> combined(std::vector<std::optional<Array>> a, double p,
                                           const std::vector<std::optional<Array>>& b, double q) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i])
      for (Index k = 0; k < a[i]->size(); ++k) (*a[i])[k] = p * (*a[i])[k] + q * (*b[i])[k];
  return a;
}

#define EXPECT_SAME_GRADIENTS(got, expected, tolerance, what)                  \
  do {                                                                         \
    const std::string wrong = difference(got, expected, tolerance);            \
    EXPECT_TRUE(wrong.empty()) << row().name << ", " << what << ", " << wrong; \
  } while (false)

/// The row's operands as leaves and, for the operator, as results of recorded operations: their gradients
/// then live in scratch, where dx may take the memory of dy.
struct Recorded {
  Anys leaves, inputs;
  explicit Recorded(const Case& c) : leaves(operands<double>(c, values_for(c))), inputs(leaves) {
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (is_leaf(leaves[i])) inputs[i] = toy::scale(get(leaves[i]), 1.0);
  }
};

TEST_P(DifferentiableOperators, GiveIntermediatesTheGradientOfLeaves) {
  const auto expected = expected_gradients(row(), operands<double>(row(), values_for(row())), 3);
  const Recorded x(row());
  GradStore grads;
  wengert::backward(loss_of(call(row(), x.inputs), 3), grads);
  EXPECT_SAME_GRADIENTS(gradients<double>(grads, x.leaves), expected, row().double_tolerance,
                        "gradients of intermediates");
}

TEST_P(DifferentiableOperators, AddUpWhenUsedTwice) {
  const Anys leaves = operands<double>(row(), values_for(row()));
  const auto expected =
      combined(expected_gradients(row(), leaves, 3), 1, expected_gradients(row(), leaves, 4), 1);
  for (const bool recorded : {false, true}) {
    Recorded x(row());
    const Anys& in = recorded ? x.inputs : x.leaves;
    GradStore grads;
    wengert::backward(toy::combine(loss_of(call(row(), in), 3), 1.0, loss_of(call(row(), in), 4), 1.0),
                      grads);
    EXPECT_SAME_GRADIENTS(gradients<double>(grads, x.leaves), expected, 10 * row().double_tolerance,
                          (recorded ? "intermediates used twice" : "leaves used twice"));
  }
  // One result with two consumers.
  const Tensor<double> y = call(row(), leaves);
  GradStore grads;
  wengert::backward(toy::combine(loss_of(y, 3), 1.0, loss_of(y, 4), 1.0), grads);
  EXPECT_SAME_GRADIENTS(gradients<double>(grads, leaves), expected, 10 * row().double_tolerance,
                        "result used twice");
}

TEST_P(DifferentiableOperators, ChangeByThreeWhenThreeTimesTheSumIsAdded) {
  for (const bool recorded : {false, true}) {
    for (const bool sum_first : {false, true}) {
      auto expected = expected_gradients(row(), operands<double>(row(), values_for(row())), 3);
      Recorded x(row());
      Anys& in = recorded ? x.inputs : x.leaves;
      Tensor<double> sums;
      const auto add_sums = [&](Tensor<double> loss) {
        for (std::size_t i = 0; i < in.size(); ++i)
          if (is_leaf(x.leaves[i]))
            loss = toy::combine(loss, 1.0, toy::dot(get(in[i]), tensor(Array(get(in[i]).shape(), 1))), 3.0);
        return loss;
      };
      const Tensor<double> zero = tensor(Array(Shape(), 0));
      Tensor<double> loss = sum_first ? add_sums(zero) : loss_of(call(row(), in), 3);
      loss = sum_first ? toy::combine(loss, 1.0, loss_of(call(row(), in), 3), 1.0) : add_sums(loss);
      GradStore grads;
      wengert::backward(loss, grads);
      for (std::size_t i = 0; i < in.size(); ++i)
        if (is_leaf(x.leaves[i])) {
          if (!expected[i]) expected[i] = Array(get(x.leaves[i]).shape());
          for (double& g : expected[i]->v) g += 3;
        }
      EXPECT_SAME_GRADIENTS(gradients<double>(grads, x.leaves), expected, 10 * row().double_tolerance,
                            "f(x) + 3 sum(x)");
    }
  }
}

TEST_P(DifferentiableOperators, AddUpOverOneTensorAsTwoOperands) {
  const Arrays values = values_for(row());
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      const Input &a = row().inputs[i], &b = row().inputs[j];
      const bool alike = a.shape == b.shape && a.lo == b.lo && a.hi == b.hi && a.differentiable &&
                         b.differentiable && !a.is_distinct && !b.is_distinct && a.kinks == b.kinks &&
                         a.explicit_values.empty() && b.explicit_values.empty();
      if (!alike) continue;
      Arrays equal = values;
      equal[j] = equal[i];
      Anys apart = operands<double>(row(), equal), aliased = apart;
      const auto separate = expected_gradients(row(), apart, 3);
      aliased[j] = aliased[i];
      const auto got = expected_gradients(row(), aliased, 3);
      ASSERT_TRUE(separate[i] && separate[j] && got[i]);
      Array sum = *separate[i];
      for (Index k = 0; k < sum.size(); ++k) sum[k] += (*separate[j])[k];
      const std::string wrong = difference(*got[i], sum, 10 * row().double_tolerance);
      EXPECT_TRUE(wrong.empty()) << row().name << ", one tensor as inputs " << i << " and " << j << ", "
                                 << wrong;
    }
}

TEST_P(DifferentiableOperators, GiveNothingToConstantsAndUnusedTensors) {
  const Arrays values = values_for(row());
  const auto all = expected_gradients(row(), operands<double>(row(), values), 3);
  Tensor<double> unused = tensor(Array({3}, 1));
  unused.requires_grad(true);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Anys x = operands<double>(row(), values);
    if (!is_leaf(x[i])) continue;
    get(x[i]).requires_grad(false);
    auto expected = all;
    expected[i].reset();
    GradStore grads(std::vector<Tensor<double>>{unused});
    const Tensor<double> y = call(row(), x);
    bool others = false;
    for (const Any& o : x) others |= is_leaf(o);
    EXPECT_EQ(y.requires_grad(), others) << row().name << ", input " << i << " constant";
    if (!others) continue;
    wengert::backward(loss_of(y, 3), grads);
    EXPECT_SAME_GRADIENTS(gradients<double>(grads, x), expected, row().double_tolerance,
                          "input " << i << " constant");
    EXPECT_FALSE(grads.find(unused)) << row().name << ", an unused leaf got a gradient";
  }
}

TEST_P(DifferentiableOperators, AccumulateUntilZeroed) {
  const Anys x = operands<double>(row(), values_for(row()));
  const auto step = [&](GradStore& grads, bool retain) {
    const Tensor<double> loss = loss_of(call(row(), x), 3);
    if (retain) wengert::backward(loss, grads, {.retain = true});
    wengert::backward(loss, grads);
  };
  GradStore grads;
  step(grads, false);
  const auto once = gradients<double>(grads, x);
  step(grads, false);
  EXPECT_SAME_GRADIENTS(gradients<double>(grads, x), combined(once, 2, once, 0), 10 * row().double_tolerance,
                        "two backward calls");
  grads.zero();
  for (const Any& o : x)
    if (is_leaf(o)) {
      EXPECT_FALSE(grads.find(std::get<Tensor<double>>(o))) << row().name << ", after zero()";
    }
  step(grads, false);
  EXPECT_SAME_GRADIENTS(gradients<double>(grads, x), once, same_bits, "after zero()");
  grads.zero();
  step(grads, true);
  EXPECT_SAME_GRADIENTS(gradients<double>(grads, x), combined(once, 2, once, 0), 10 * row().double_tolerance,
                        "retained");
}

TEST_P(DifferentiableOperators, LeaveNothingBehindWhenDropped) {
  const Anys x = operands<double>(row(), values_for(row()));
  const Tape& tape = Tape::current();
  const auto forward = [&] { call(row(), x); };
  for (int i = 0; i < 3; ++i) forward();
  const std::size_t slots = tape.slots_in_use(), in_use = wengert::pool_stats().bytes_in_use,
                    tape_bytes = tape.bytes();
  for (int i = 0; i < 100; ++i) forward();
  EXPECT_EQ(tape.size(), 0U) << row().name;
  EXPECT_EQ(tape.slots_in_use(), slots) << row().name;
  EXPECT_EQ(wengert::pool_stats().bytes_in_use, in_use) << row().name;
  EXPECT_EQ(tape.bytes(), tape_bytes) << row().name;
}

TEST_P(Operators, RecordNothingUnderNoGrad) {
  const Anys x = operands<float>(row(), values_for(row()));
  const Array recorded = to_array(row().in_float(x));
  const std::size_t before = Tape::current().size();
  const NoGrad no_grad;
  const Any y = row().in_float(x);
  EXPECT_EQ(Tape::current().size(), before) << row().name;
  EXPECT_FALSE(std::visit([](const auto& t) { return t.requires_grad(); }, y)) << row().name;
  EXPECT_EQ(difference_in_bits(to_array(y), recorded), "") << row().name << ", under no_grad";
}

/// Writes zeros, or the smallest index, into a tensor behind the back of whoever saved it.
void overwrite(const Any& x, double value) {
  std::visit(
      [value](const auto& t) {
        using E = typename std::remove_cvref_t<decltype(t)>::value_type;
        Shape places = t.shape();  // expanded axes hold one place only
        for (int i = 0; i < places.rank(); ++i)
          if (t.strides()[i] == 0 && places[i] > 1) places[i] = 1;
        Tensor<E>(t.buffer(), places, t.strides(), t.offset()).fill(static_cast<E>(value));
      },
      x);
}

TEST_P(DifferentiableOperators, RefuseOrIgnoreWritesAfterTheyRan) {
  const Arrays values = values_for(row());
  const auto expected = expected_gradients(row(), operands<double>(row(), values), 3);
  for (std::size_t i = 0; i <= values.size(); ++i) {  // the last round writes to the result
    const Anys x = operands<double>(row(), values);
    const Tensor<double> y = call(row(), x);
    const Tensor<double> loss = loss_of(y, 3);
    const bool result = i == values.size();
    if ((result ? y.size() : to_array(x[i]).size()) == 0) continue;
    overwrite(result ? Any(y) : x[i], result                                      ? 7
                                      : row().inputs[i].kind == Input::Kind::real ? 7
                                                                                  : row().inputs[i].lo);
    GradStore grads;
    try {
      wengert::backward(loss, grads);
    } catch (const wengert::TapeError& e) {
      EXPECT_NE(std::string(e.what()).find("was written in place since"), std::string::npos) << e.what();
      for (const auto& g : gradients<double>(grads, x)) EXPECT_FALSE(g) << row().name;
      Tape::current().clear();
      continue;
    }
    EXPECT_SAME_GRADIENTS(gradients<double>(grads, x), expected, row().double_tolerance,
                          (result ? "result" : wengert::detail::text("input ", i))
                              << " written before backward");
  }
}

TEST_P(OperatorsWithFaults, ThrowAndLeaveTheTapeAsItWas) {
  const Case& c = row();
  for (const Fault& fault : c.faults) {
    const Anys x = operands<double>(c, values_for(c, fault.shapes));
    Recorded before(c);  // something on the tape that must survive
    const Tape& tape = Tape::current();
    const std::size_t records = tape.size(), slots = tape.slots_in_use();
    const std::size_t in_use = wengert::pool_stats().bytes_in_use;
    try {
      c.in_double(x);
      ADD_FAILURE() << c.name << ": nothing was thrown; expected " << fault.message;
    } catch (const std::exception& e) {
      EXPECT_EQ(std::string(e.what()), fault.message) << c.name;
      EXPECT_TRUE(fault.type_matches(e)) << c.name << ": another type for " << fault.message;
    }
    EXPECT_EQ(tape.size(), records) << c.name;
    EXPECT_EQ(tape.slots_in_use(), slots) << c.name;
    EXPECT_EQ(wengert::pool_stats().bytes_in_use, in_use) << c.name;
  }
}

/// One training step's worth of work.
template <class T>
void step(const Case& c, std::span<const Any> x, const Tensor<T>& dy, GradStore& grads) {
  const Any y = call_of<T>(c)(x);
  if (!c.differentiable) return;
  wengert::backward(std::get<Tensor<T>>(y), dy, grads);
  grads.zero();
}

TEST_P(OperatorsAtWork, AskTheHeapForNothingInASteadyState) {
  const Case& c = row();
  if (c.allocates) return;
  for (const Shapes& shapes : {c.shapes(), c.bench}) {
    const Anys x = operands<float>(c, values_for(c, shapes));
    Tensor<float> dy;
    {
      const NoGrad no_grad;
      dy = tensor_of<float>(seed_for(to_array(c.in_float(x)).shape), Layout::contiguous);
    }
    GradStore grads;
    for (int i = 0; i < 3; ++i) step<float>(c, x, dy, grads);
    const std::size_t requests = heap::requests_of([&] {
      for (int i = 0; i < 3; ++i) step<float>(c, x, dy, grads);
    });
    EXPECT_EQ(requests, 0U) << c.name << ", heap requests in three steps";
  }
}

TEST_P(OperatorsAtWork, GiveTheSameBitsAtAnyNumberOfThreads) {
  struct RestoreThreads {
    int before = wengert::num_threads();
    ~RestoreThreads() { wengert::set_num_threads(before); }
  } const restore;
  const Case& c = row();
  const Anys x = operands<float>(c, values_for(c, c.bench));
  wengert::set_num_threads(1);
  const Outcome expected = run<float>(c, x);
  for (const int threads : {2, 3}) {
    wengert::set_num_threads(threads);
    const Outcome got = run<float>(c, x);
    const std::string where = c.name + " at " + std::to_string(threads) + " threads, ";
    EXPECT_EQ(difference_in_bits(got.y, expected.y), "") << where;
    EXPECT_EQ(difference(got.dx, expected.dx, same_bits), "") << where;
  }
}

}  // namespace
}  // namespace cases
