// What a tape refuses: stale handles, a second backward, writes after a save, other threads, outer tapes, and
// everything that would sever a gradient silently. Exact types and messages; the tape stays as it was.
#include <thread>

#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/toy.hpp"

using namespace wengert;

namespace {

class TapeFaults : public ::testing::Test {
 protected:
  void TearDown() override { Tape::current().clear(); }

  static Tensor<float> leaf(std::initializer_list<float> values) {
    Tensor<float> x({static_cast<Index>(values.size())}, values);
    x.requires_grad(true);
    return x;
  }
  static Tensor<float> ones(const Shape& shape) {
    Tensor<float> x(shape);
    x.fill(1);
    return x;
  }
  template <class E, class F>
  static std::string refused(F f) {
    const std::size_t records = Tape::current().size(), slots = Tape::current().slots_in_use();
    const std::string message = message_of<E>(f);
    EXPECT_EQ(Tape::current().size(), records);
    EXPECT_EQ(Tape::current().slots_in_use(), slots);
    return message;
  }

  Tensor<float> x_ = leaf({1, 2});
  GradStore grads_;
};

TEST_F(TapeFaults, LossOfSeveralElementsNeedsASeed) {
  const Tensor<float> y = toy::scale(x_, 2.0F);
  EXPECT_EQ(refused<ShapeError>([&] { backward(y, grads_); }),
            "backward: loss must hold one element; got (2); reduce it, or pass a seed of that shape");
  EXPECT_EQ(refused<ShapeError>([&] { backward(y, ones({3}), grads_); }),
            "backward: the seed's shape differs; y is (2), seed is (3); expected equal shapes");
  backward(y, ones({2}), grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{2, 2}));
}

TEST_F(TapeFaults, ConstantHasNoBackward) {
  const std::string expected =
      "backward: nothing that asks for a gradient led to this tensor; shape is (); expected the result of "
      "recorded operations on a leaf; call requires_grad(true) on the parameters, and record outside no_grad";
  const Tensor<float> c = ones({2});
  EXPECT_EQ(refused<TapeError>([&] { backward(toy::dot(c, c), grads_); }), expected);
  const Tensor<float> unrecorded = no_grad([&] { return toy::dot(x_, c); });
  EXPECT_EQ(refused<TapeError>([&] { backward(unrecorded, grads_); }), expected);
  EXPECT_EQ(refused<TapeError>([&] { backward(toy::dot(x_.detach(), c), grads_); }), expected);
}

TEST_F(TapeFaults, SecondBackwardThrows) {
  const Tensor<float> loss = toy::dot(x_, ones({2}));
  backward(loss, grads_);
  EXPECT_EQ(
      refused<TapeError>([&] { backward(loss, grads_); }),
      "backward: the tape of this tensor has been consumed; shape is (); expected one backward a forward; "
      "pass {.retain = true} to the earlier backward, or run the forward pass again");
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{1, 1}));
}

TEST_F(TapeFaults, StaleHandleThrowsInEveryUse) {
  const Tensor<float> h = toy::scale(x_, 2.0F);
  const std::uint32_t before = Tape::current().generation();
  backward(toy::dot(h, ones({2})), grads_);
  const std::string generations = detail::text(" (generation ", before, " of ", before + 1, ")");
  EXPECT_EQ(refused<TapeError>([&] { toy::mul(x_, h); }),
            "toy_mul: operand 2 was recorded on a tape that has been cleared since" + generations +
                "; expected a tensor of the present forward pass; record it again, or pass its detach()");
  EXPECT_EQ(refused<TapeError>([&] { toy::scale(h, 1.0F); }),
            "toy_scale: x was recorded on a tape that has been cleared since" + generations +
                "; expected a tensor of the present forward pass; record it again, or pass its detach()");
  Tensor<float> copy = h;
  EXPECT_EQ(refused<TapeError>([&] { copy.retain_grad(); }),
            "retain_grad: the tensor is not on the tape; shape is (2); expected the result of a recorded "
            "operation, before backward");
  EXPECT_EQ(h.to_vector(), (std::vector<float>{2, 4})) << "the values stay readable";
  EXPECT_EQ(toy::scale(h.detach(), 2.0F).to_vector(), (std::vector<float>{4, 8}));
  EXPECT_EQ(no_grad([&] { return toy::scale(h, 2.0F); }).to_vector(), (std::vector<float>{4, 8}));
}

TEST_F(TapeFaults, WriteAfterSaveThrowsBeforeAnythingIsAccumulated) {
  Tensor<float> c({2}, {3, 4});
  const Tensor<float> loss =
      toy::combine(toy::dot(toy::mul(x_, c), ones({2})), 1.0F, toy::dot(x_, ones({2})), 1.0F);
  c.mutable_data()[0] = 5;
  EXPECT_EQ(refused<TapeError>([&] { backward(loss, grads_); }),
            "backward: a tensor that toy_mul saved was written in place since; shape is (2), version is 1; "
            "expected version 0; write to a clone, or after backward");
  EXPECT_FALSE(grads_.find(x_));
}

TEST_F(TapeFaults, EveryWayToWriteIsNoticed) {
  const auto message_after = [&](auto write) {
    Tensor<float> w = leaf({1, 1});
    const Tensor<float> loss = toy::dot(toy::mul(x_, w), ones({2}));
    write(w);
    const std::string m = message_of<TapeError>([&] { backward(loss, grads_); });
    Tape::current().clear();
    return m.substr(0, 60);
  };
  const std::string expected = "backward: a tensor that toy_mul saved was written in place since";
  EXPECT_EQ(message_after([](Tensor<float>& w) { w.mutable_data()[1] = 9; }), expected.substr(0, 60));
  EXPECT_EQ(message_after([](Tensor<float>& w) { w.fill(9); }), expected.substr(0, 60));
  EXPECT_EQ(message_after([&](Tensor<float>& w) {
              w.copy_from(Tensor<float>({2}, {7, 8}));
            }),
            expected.substr(0, 60));
  EXPECT_EQ(message_after([](Tensor<float>& w) { w.detach().fill(9); }), expected.substr(0, 60));
  EXPECT_EQ(message_after([](Tensor<float>& w) { Tensor<float>(w.buffer(), {1}, {1}, 1).fill(9); }),
            expected.substr(0, 60));
}

TEST_F(TapeFaults, NothingSeversAGradientSilently) {
  Tensor<float> y = toy::scale(x_, 2.0F);
  EXPECT_EQ(
      refused<TapeError>([&] { y.mutable_data(); }),
      "mutable_data: the tensor is the result of a recorded operation; shape is (2); expected a leaf or a "
      "constant; write to its detach() or to a clone");
  EXPECT_EQ(
      refused<TapeError>([&] { y.requires_grad(true); }),
      "requires_grad: the tensor is the result of a recorded operation; shape is (2); expected a leaf; use "
      "retain_grad() to see its gradient, or start from its detach()");
  Tensor<float> into = ones({2});
  EXPECT_EQ(refused<TapeError>([&] { into.copy_from(y); }),
            "copy_from: x asks for a gradient, which a copy in place would sever; shape is (2); expected a "
            "constant; pass its detach()");
  EXPECT_EQ(refused<TapeError>([&] { into.copy_from(x_); }),
            "copy_from: x asks for a gradient, which a copy in place would sever; shape is (2); expected a "
            "constant; pass its detach()");
  EXPECT_EQ(into.to_vector(), (std::vector<float>{1, 1}));
  EXPECT_EQ(into.version(), 1U) << "only fill() wrote";
  into.copy_from(y.detach());
  EXPECT_EQ(into.to_vector(), (std::vector<float>{2, 4}));
}

TEST_F(TapeFaults, OtherThreadsMayReadButNotRecord) {
  const Tensor<float> y = toy::scale(x_, 2.0F);
  const Tensor<float> loss = toy::dot(y, ones({2}));
  std::vector<std::string> messages;
  std::thread([&] {
    messages.push_back(message_of<TapeError>([&] { toy::scale(y, 1.0F); }));
    const Tensor<float> copy = y;
    messages.push_back(message_of<TapeError>([&] { toy::mul(copy, copy); }));
    GradStore other;
    messages.push_back(message_of<TapeError>([&] { backward(loss, other); }));
    EXPECT_EQ(toy::scale(copy.detach(), 2.0F).to_vector(), (std::vector<float>{4, 8}));
  }).join();
  const std::string foreign =
      " was recorded by another thread or on a tape that has ended; expected a tensor of this thread's tape; "
      "pass its detach()";
  EXPECT_EQ(messages[0], "toy_scale: x" + foreign);
  EXPECT_EQ(messages[1], "toy_mul: operand 1" + foreign);
  EXPECT_EQ(messages[2], "backward: y" + foreign);
  backward(loss, grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{2, 2}));
}

TEST_F(TapeFaults, ResultOfAThreadThatHasEndedIsForeign) {
  Tape::current();  // else this thread might be lent the very tape of the one that ended
  Tensor<float> y;
  std::thread([&] { y = toy::scale(x_, 2.0F); }).join();
  EXPECT_EQ(y.to_vector(), (std::vector<float>{2, 4}));
  EXPECT_EQ(
      refused<TapeError>([&] { toy::scale(y, 1.0F); }),
      "toy_scale: x was recorded by another thread or on a tape that has ended; expected a tensor of this "
      "thread's tape; pass its detach()");
  y = Tensor<float>();
}

TEST_F(TapeFaults, OuterTapeIsOutOfReachInside) {
  const Tensor<float> outer = toy::scale(x_, 2.0F);
  const Tensor<float> c = ones({2});
  EXPECT_EQ(
      refused<TapeError>(
          [&] { value_and_grad([&](const auto& v) { return toy::dot(toy::mul(v, outer), c); }, c); }),
      "toy_mul: operand 2 belongs to an outer tape; expected a tensor of the innermost tape; pass it as an "
      "argument, or pass its detach()");
  EXPECT_EQ(
      refused<TapeError>([&] { value_and_grad([&](const auto& v) { return toy::dot(v, c); }, outer); }),
      "value_and_grad: an argument is the result of a recorded operation, and the results here would not "
      "carry its gradient; expected leaves or constants; pass its detach()");
  EXPECT_EQ(
      refused<ShapeError>([&] { value_and_grad([&](const auto& v) { return toy::scale(v, 1.0F); }, c); }),
      "value_and_grad: f must return one element; got (2); reduce it");
  backward(toy::dot(outer, c), grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{2, 2})) << "the outer tape goes on";
}

/// Does in its backward rule what `deed` says.
struct MeddlingRule {
  static constexpr std::string_view name = "meddling";
  void (*deed)();
  void backward(Vjp& v) {
    deed();
    v.add(0, v.dy_tensor<float>());
  }
};
Tensor<float> meddle(const Tensor<float>& x, void (*deed)()) {
  const Recorder rec("meddling", x);
  Tensor<float> y = x.packed_copy();
  if (rec) rec.record(y, MeddlingRule{deed});
  return y;
}

TEST_F(TapeFaults, RulesNeitherRecordNorWalkTheirOwnTape) {
  const auto recording = [] {
    const EnableGrad enable;
    Tensor<float> w({1}, {1.0F});
    w.requires_grad(true);
    toy::scale(w, 1.0F);
  };
  Tensor<float> loss = toy::dot(meddle(x_, recording), ones({2}));
  EXPECT_EQ(message_of<TapeError>([&] { backward(loss, grads_); }),
            "toy_scale: recorded while backward walks this tape; open a NestedTape inside a backward rule");
  const auto nested = [] {
    const NestedTape tape;
    const EnableGrad enable;
    Tensor<float> w({1}, {1.0F});
    w.requires_grad(true);
    GradStore inner;
    backward(toy::scale(w, 3.0F), Tensor<float>({1}, {1.0F}), inner);
    ASSERT_EQ(inner[w].item(), 3.0F);
  };
  grads_.zero();
  loss = toy::dot(meddle(x_, nested), ones({2}));
  backward(loss, grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{1, 1}));
}

TEST_F(TapeFaults, RuleThatThrowsLeavesAUsableTape) {
  bool armed = true;
  const Tensor<float> loss = toy::dot(toy::faulty(toy::scale(x_, 2.0F), armed), ones({2}));
  EXPECT_EQ(message_of<std::runtime_error>([&] { backward(loss, grads_); }), "toy fault");
  EXPECT_TRUE(Tape::current().empty());
  EXPECT_FALSE(Tape::current().walking());
  grads_.zero();
  armed = false;
  backward(toy::dot(toy::faulty(toy::scale(x_, 2.0F), armed), ones({2})), grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{2, 2}));
}

TEST_F(TapeFaults, RuleThatThrowsUnderRetainMayBeWalkedAgain) {
  bool armed = true;
  const Tensor<float> loss = toy::dot(toy::faulty(toy::scale(x_, 2.0F), armed), ones({2}));
  EXPECT_EQ(message_of<std::runtime_error>([&] { backward(loss, grads_, {.retain = true}); }), "toy fault");
  armed = false;
  grads_.zero();
  backward(loss, grads_);
  EXPECT_EQ(grads_[x_].to_vector(), (std::vector<float>{2, 2}));
}

}  // namespace
