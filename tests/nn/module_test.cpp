// Modules: names, counts, modes, state, copies and moves, the summary, and what a wrong list is told.

#include <memory>

#include <gtest/gtest.h>

#include <wengert/core/backward.hpp>
#include <wengert/nn/nn.hpp>
#include <wengert/ops/arithmetic.hpp>
#include <wengert/ops/create_random.hpp>
#include <wengert/ops/losses.hpp>

#include "support/errors.hpp"

using namespace wengert;

namespace {

struct Block : nn::Module<Block> {
  nn::Linear<float> inner;
  nn::Parameter<float> scale{ones<float>({2})};
  nn::Buffer<float> seen{zeros<float>({1})};
  explicit Block(Generator& gen) : inner(2, 2, gen) {}
  void members(auto& list) { list("inner", inner, "scale", scale, "seen", seen); }
  Tensor<float> operator()(const Tensor<float>& x) {
    Tensor<float> y = inner(x);
    noted(y);
    return y;
  }
};

struct Net : nn::Module<Net> {
  Generator gen{1};
  nn::Linear<float> first{3, 2, gen};
  std::vector<Block> blocks{Block(gen), Block(gen)};
  std::unique_ptr<nn::Linear<float>> last = std::make_unique<nn::Linear<float>>(2, 1, gen);
  std::optional<nn::Linear<float>> unused;
  nn::Dropout drop{0.5, gen};
  void members(auto& list) {
    list("first", first, "blocks", blocks, "last", last, "unused", unused, "drop", drop);
  }
  Tensor<float> operator()(const Tensor<float>& x) {
    Tensor<float> y = relu(first(x));
    for (Block& b : blocks) y = b(y);
    return (*last)(drop(y));
  }
};

std::vector<std::string> names(const std::vector<NamedTensor<float>>& list) {
  std::vector<std::string> out;
  for (const auto& n : list) out.push_back(n.name);
  return out;
}

TEST(Module, NamesFollowTheLists) {
  const Net net;
  EXPECT_EQ(names(net.named_parameters()),
            (std::vector<std::string>{"first.weight", "first.bias", "blocks.0.inner.weight",
                                      "blocks.0.inner.bias", "blocks.0.scale", "blocks.1.inner.weight",
                                      "blocks.1.inner.bias", "blocks.1.scale", "last.weight", "last.bias"}));
  EXPECT_EQ(names(net.named_buffers()), (std::vector<std::string>{"blocks.0.seen", "blocks.1.seen"}));
  EXPECT_EQ(net.state().size(), 12u);
  EXPECT_EQ(net.parameter_count(), 8 + 2 * 8 + 3);
  EXPECT_EQ(Net().named_generators().at(0).first, "drop.generator");
}

TEST(Module, ParametersAreHandlesOnTheModulesTensors) {
  Net net;
  const std::vector<Tensor<float>> p = net.parameters();
  ASSERT_EQ(p.size(), 10u);
  EXPECT_TRUE(p[0].shares_buffer(net.first.weight));
  EXPECT_TRUE(p[0].requires_grad());
  GradStore grads;
  backward(mse_loss(net(ones<float>({4, 3})), zeros<float>({4, 1})), grads);
  EXPECT_TRUE(grads.find(p[0]));
  EXPECT_FALSE(grads.find(p[4]));  // the scale of a block takes no part
}

TEST(Module, FrozenParametersAreLeftOut) {
  Net net;
  net.first.weight.requires_grad(false);
  EXPECT_EQ(net.parameters().size(), 9u);
  EXPECT_EQ(net.named_parameters().size(), 10u);
  EXPECT_EQ(net.parameter_count(), 27);
}

TEST(Module, TrainAndEvalReachEveryModule) {
  Net net;
  EXPECT_TRUE(net.blocks[1].inner.training());
  net.eval();
  EXPECT_FALSE(net.training() || net.blocks[1].training() || net.blocks[1].inner.training() ||
               net.last->training() || net.drop.training());
  net.blocks[0].train();
  EXPECT_TRUE(net.blocks[0].inner.training());
  EXPECT_FALSE(net.blocks[1].inner.training());
  net.train();
  EXPECT_TRUE(net.training() && net.drop.training());
}

TEST(Module, Summary) {
  Net net;
  net.last->bias->requires_grad(false);
  net.drop.eval();
  EXPECT_EQ(net.summary(ones<float>({4, 3})),
            "layer           type     output  parameters\n"
            "first           Linear   (4, 2)           8\n"
            "blocks.0        Block    (4, 2)           2\n"
            "blocks.0.inner  Linear   (4, 2)           6\n"
            "blocks.1        Block    (4, 2)           2\n"
            "blocks.1.inner  Linear   (4, 2)           6\n"
            "last            Linear   (4, 1)           3\n"
            "drop            Dropout  (4, 2)           0\n"
            "total           Net      (4, 1)          27\n"
            "frozen                                    1\n");
  EXPECT_TRUE(net.training());
  EXPECT_FALSE(net.drop.training());
  Generator gen(1);
  nn::Sequential wide{nn::Linear<float>(1000, 2000, gen), nn::Tanh()};
  EXPECT_EQ(wide.summary(ones<float>({1, 1000})),
            "layer  type        output     parameters\n"
            "0      Linear      (1, 2000)   2,002,000\n"
            "1      Tanh        (1, 2000)           0\n"
            "total  Sequential  (1, 2000)   2,002,000\n");
}

struct OwnTensors : nn::Module<OwnTensors> {
  Generator gen{1};
  nn::Parameter<float> shift{zeros<float>({2})};
  nn::Linear<float> unused{2, 2, gen};
  void members(auto& list) { list("shift", shift, "unused", unused); }
  Tensor<float> operator()(const Tensor<float>& x) { return x + shift; }
};

TEST(Module, SummaryShowsOwnTensorsAndWhatDidNotRun) {
  EXPECT_EQ(OwnTensors().summary(ones<float>({2})),
            "layer   type        output  parameters\n"
            "unused  Linear      -                6\n"
            "(own)   OwnTensors                   2\n"
            "total   OwnTensors  (2)              8\n");
}

struct ForgetsModule : nn::Module<ForgetsModule> {
  Generator gen{1};
  nn::Linear<float> a{2, 2, gen}, b{2, 2, gen};
  void members(auto& list) { list("a", a); }
};
struct ForgetsTensor : nn::Module<ForgetsTensor> {
  nn::Parameter<float> w;
  void members(auto&) {}
};
struct ForgetsDeep : nn::Module<ForgetsDeep> {
  ForgetsTensor deep;
  void members(auto& list) { list("deep", deep); }
};
struct SameName : nn::Module<SameName> {
  nn::Parameter<float> a, b;
  void members(auto& list) { list("a", a, "a", b); }
};
struct SameMember : nn::Module<SameMember> {
  nn::Parameter<float> a;
  void members(auto& list) { list("a", a, "b", a); }
};
struct BadName : nn::Module<BadName> {
  nn::Parameter<float> a;
  void members(auto& list) { list("a.b", a); }
};

TEST(Module, TellsWhatAListForgets) {
  EXPECT_EQ(message_of<ValueError>([] { ForgetsModule().parameters(); }),
            "members: ForgetsModule does not list a Linear that it holds, declared after \"a\"; expected "
            "list(\"name\", member) for every Parameter, Buffer and module");
  EXPECT_EQ(message_of<ValueError>([] { ForgetsTensor().eval(); }),
            "members: ForgetsTensor does not list a Parameter that it holds; expected list(\"name\", member) "
            "for every Parameter, Buffer and module");
  EXPECT_EQ(message_of<ValueError>([] { (void)ForgetsDeep().state(); }),
            "members: ForgetsTensor does not list a Parameter that it holds; expected list(\"name\", member) "
            "for every Parameter, Buffer and module");
  EXPECT_EQ(message_of<ValueError>([] { SameName().parameters(); }),
            "members: SameName lists two members by the name \"a\"; expected different names");
  EXPECT_EQ(message_of<ValueError>([] { SameMember().parameters(); }),
            "members: SameMember lists one member twice, as \"a\" and \"b\"; expected every member once");
  EXPECT_EQ(message_of<ValueError>([] { BadName().parameters(); }),
            "members: BadName lists a member by the name \"a.b\"; expected a name without a dot");
}

struct Pair : nn::Module<Pair> {
  nn::Linear<float> a, b;
  explicit Pair(Generator& gen) : a(2, 3, gen), b(3, 1, gen, {.bias = false}) {}
  void members(auto& list) { list("a", a, "b", b); }
  Tensor<float> operator()(const Tensor<float>& x) { return b(a(x)); }
};

TEST(Module, StateTravelsByName) {
  Generator gen(1);
  Pair from(gen), to(gen);
  const auto optimized = to.parameters();
  EXPECT_NE(from.a.weight.to_vector(), to.a.weight.to_vector());
  auto state = from.state();
  std::swap(state[0], state[2]);
  to.load_state(state);
  EXPECT_EQ(from.a.weight.to_vector(), to.a.weight.to_vector());
  EXPECT_EQ(from.b.weight.to_vector(), to.b.weight.to_vector());
  EXPECT_FALSE(from.a.weight.shares_buffer(to.a.weight));
  EXPECT_TRUE(to.parameters()[0].shares_buffer(optimized[0]));  // written in place
  EXPECT_FALSE(state[0].tensor.requires_grad());
}

TEST(Module, RefusesStateThatDoesNotFitAndChangesNothing) {
  Generator gen(1);
  Pair model(gen);
  const auto before = model.a.weight.to_vector();
  auto state = Pair(gen).state();
  state[1].name = "a.offset";
  EXPECT_EQ(
      message_of<ValueError>([&] { model.load_state(state); }),
      "load_state: names differ; missing: a.bias; unexpected: a.offset; expected the 3 names of state()");
  state = Pair(gen).state();
  state[2].tensor = zeros<float>({3, 1});
  EXPECT_EQ(message_of<ShapeError>([&] { model.load_state(state); }),
            "load_state: shapes differ for b.weight; given is (3, 1), own is (1, 3); expected equal shapes");
  EXPECT_EQ(message_of<ValueError>([&] { model.load_state({}); }),
            "load_state: names differ; missing: a.weight, a.bias, b.weight; expected the 3 names of state()");
  EXPECT_EQ(model.a.weight.to_vector(), before);
}

TEST(Module, ACopySharesNothing) {
  Generator gen(1);
  Pair model(gen);
  model.a.bias->requires_grad(false);
  Pair copy = model;
  EXPECT_EQ(copy.a.weight.to_vector(), model.a.weight.to_vector());
  copy.a.weight.fill(0);
  EXPECT_NE(copy.a.weight.to_vector(), model.a.weight.to_vector());
  EXPECT_FALSE(copy.a.weight.place().leaf() == model.a.weight.place().leaf());
  EXPECT_EQ(copy.parameters().size(), 2u);  // what was frozen stays frozen
  copy.eval();
  EXPECT_TRUE(model.training());
}

TEST(Module, AssigningACopyWritesInPlace) {
  Generator gen(1);
  Pair model(gen), best(gen);
  const auto p = best.parameters();
  best = model;
  EXPECT_EQ(p[0].to_vector(), model.a.weight.to_vector());
  EXPECT_TRUE(best.a.weight.place().leaf() == p[0].place().leaf());
  EXPECT_FALSE(best.a.weight.shares_buffer(model.a.weight));
  nn::Parameter<float> w{ones<float>({2})};
  const nn::Parameter<float> wider{zeros<float>({3})};
  w = wider;
  EXPECT_EQ(w.shape(), Shape({3}));
  EXPECT_TRUE(w.requires_grad());
  EXPECT_FALSE(w.shares_buffer(wider));
}

TEST(Module, AMoveHandsTheTensorsOver) {
  Generator gen(1);
  Pair model(gen);
  const auto p = model.parameters();
  Pair moved = std::move(model);
  EXPECT_TRUE(moved.a.weight.shares_buffer(p[0]));
  EXPECT_TRUE(moved.a.weight.place().leaf() == p[0].place().leaf());
  std::vector<Pair> many;
  for (int i = 0; i < 5; ++i) many.push_back(i == 0 ? std::move(moved) : Pair(gen));
  EXPECT_TRUE(many[0].a.weight.shares_buffer(p[0]));
  EXPECT_EQ(many[0].parameters().size(), 3u);
  Pair replaced(gen);
  replaced = std::move(many[0]);
  EXPECT_TRUE(replaced.parameters()[0].place().leaf() == p[0].place().leaf());
}

TEST(Parameter, DoesNotAliasTheTensorItIsMadeOf) {
  const Tensor<float> x = ones<float>({2, 3});
  nn::Parameter<float> p(x);
  EXPECT_FALSE(p.shares_buffer(x));
  EXPECT_TRUE(p.requires_grad());
  EXPECT_FALSE(x.requires_grad());
  Tensor<float> fresh = zeros<float>({2});
  const float* data = fresh.data();
  EXPECT_EQ(nn::Parameter<float>(std::move(fresh)).data(), data);
  EXPECT_FALSE(nn::Buffer<float>(x).requires_grad());
}

}  // namespace
