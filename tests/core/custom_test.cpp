// custom: a user's operator on whole tensors, and what it refuses.
#include <gtest/gtest.h>

#include <wengert/core/custom.hpp>

#include "support/errors.hpp"

using namespace wengert;
using Floats = std::vector<float>;

namespace {

/// y = a + 2 b, whose gradient of b comes in the shape asked for.
struct PlusTwice {
  static constexpr std::string_view name = "plus_twice";
  Shape shape;

  Tensor<float> value(const Tensor<float>& a, const Tensor<float>& b) const {
    Tensor<float> y(a.shape());
    for (Index i = 0; i < y.size(); ++i) y.fresh_data()[i] = a.data()[i] + 2 * b.data()[i];
    return y;
  }
  auto vjp(const Tensor<float>& dy, const Tensor<float>&, const Tensor<float>&, const Tensor<float>&) const {
    Tensor<float> db(shape);
    for (Index i = 0; i < db.size(); ++i) db.fresh_data()[i] = 2 * dy.data()[i];
    return std::tuple(dy, db);
  }
};

struct Constant {
  static constexpr std::string_view name = "constant";
  Tensor<float> value(const Tensor<float>& x) const { return x; }
};

Tensor<float> leaf(const Shape& shape) {
  Tensor<float> x(shape);
  x.fill(1);
  x.requires_grad(true);
  return x;
}

Tensor<float> seed() { return Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}); }

TEST(Custom, AddsTheGradientsOfItsVjp) {
  const Tensor<float> a = leaf({2, 3}), b = leaf({2, 3});
  GradStore grads;
  backward(custom(PlusTwice{{2, 3}}, a, b), seed(), grads);
  EXPECT_EQ(grads[a].to_vector(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(grads[b].to_vector(), (Floats{2, 4, 6, 8, 10, 12}));
}

TEST(Custom, RefusesAGradientOfAnotherShapeThoughItsSizeFits) {
  const Tensor<float> a = leaf({2, 3}), b = leaf({2, 3});
  GradStore grads;
  EXPECT_EQ(message_of<ShapeError>([&] {
              backward(custom(PlusTwice{{3, 2}}, a, b), seed(), grads);
            }),
            "plus_twice: the gradient of input 1 has another shape; gradient is (3, 2); expected (2, 3)");
  EXPECT_FALSE(grads.find(a)) << "nothing of a faulty rule is added";
}

TEST(Custom, ShapeOfAnUnwantedGradientDoesNotMatter) {
  const Tensor<float> a = leaf({2, 3});
  GradStore grads;
  backward(custom(PlusTwice{{0}}, a, a.detach()), seed(), grads);
  EXPECT_EQ(grads[a].to_vector(), (Floats{1, 2, 3, 4, 5, 6}));
}

TEST(Custom, WithoutVjpRefusesInputsThatAskForAGradient) {
  EXPECT_EQ(message_of<TapeError>([] { custom(Constant(), leaf({1})); }),
            "constant: the operation has no vjp and cannot be differentiated; expected inputs without "
            "gradient; pass their detach()");
  EXPECT_TRUE(Tape::current().empty());
  EXPECT_FALSE(custom(Constant(), leaf({1}).detach()).requires_grad());
}

}  // namespace
