// Every row against its reference, central differences, its own result on views, all vector tails, and the
// points that were worked out by hand. A failure names operator, property, input, index, expected and got.
#include <gtest/gtest.h>

#include <wengert/check/gradcheck.hpp>

#include "cases/operands.hpp"
#include "cases/suites.hpp"

namespace cases {
namespace {

class Rows : public RowTest {};
class DifferentiableRows : public RowTest {};
class ResizableRows : public RowTest {};
class RowsWithPoints : public RowTest {};
CASES_SUITE(Rows, [](const Case&) { return true; });
CASES_SUITE(DifferentiableRows, [](const Case& c) { return c.differentiable; });
CASES_SUITE(ResizableRows, [](const Case& c) { return static_cast<bool>(c.resize); });
CASES_SUITE(RowsWithPoints, [](const Case& c) { return !c.points.empty(); });

TEST_P(Rows, AreComplete) {
  EXPECT_TRUE(row().reference) << row().name << ": the row has no reference";
  EXPECT_TRUE(!row().bench.empty()) << row().name << ": the row has no shapes for the benchmark";
}

template <class T>
void expect_values(const Case& c, const Shapes& shapes, const std::string& what) {
  const Arrays x = values_for(c, shapes);
  const Array got = to_array(call_of<T>(c)(operands<T>(c, x)));
  const std::string d = difference(got, c.reference(x), tolerance_of<T>(c));
  EXPECT_TRUE(d.empty()) << c.name << ", " << what << " in " << type_name<T>() << ", " << d;
}

TEST_P(Rows, GiveTheValuesOfTheReference) {
  if (!row().reference) return;
  expect_values<double>(row(), row().shapes(), "values");
  expect_values<float>(row(), row().shapes(), "values");
}

/// gradcheck with the row's other operands held fixed.
wengert::GradcheckReport check_gradient(const Case& c, const Arrays& x,
                                        const wengert::GradcheckOptions& options) {
  Anys all = operands<double>(c, x);
  std::vector<std::size_t> which;
  std::vector<Tensor<double>> leaves;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is_leaf(all[i])) {
      which.push_back(i);
      leaves.push_back(std::get<Tensor<double>>(all[i]));
    }
  const auto f = [&](std::span<const Tensor<double>> inputs) {
    for (std::size_t k = 0; k < which.size(); ++k) all[which[k]] = inputs[k];
    return std::get<Tensor<double>>(c.in_double(all));
  };
  return wengert::gradcheck(f, std::span<const Tensor<double>>(leaves), options);
}

/// The gradient in float is that in double, which was checked, up to rounding.
void expect_float_gradient(const Case& c, const Arrays& x, const std::string& what) {
  const Outcome f = run<float>(c, operands<float>(c, x)), d = run<double>(c, operands<double>(c, x));
  const std::string wrong = difference(f.dx, d.dx, 10 * c.float_tolerance);
  EXPECT_TRUE(wrong.empty()) << c.name << ", float gradient against double" << what << ", " << wrong;
}

TEST_P(DifferentiableRows, HaveTheGradientOfCentralDifferences) {
  for (const std::uint32_t seed : {1U, 2U}) {
    const Arrays x = values_for(row(), seed);
    const auto report = check_gradient(
        row(), x,
        {.rtol = row().gradient_tolerance, .atol = row().gradient_tolerance, .every_coordinate = 200});
    EXPECT_TRUE(report.ok) << row().name << ", " << report.message;
    expect_float_gradient(row(), x, "");
  }
}

TEST_P(ResizableRows, AreRightAtEveryVectorTail) {
  const Case& c = row();
  for (Index n = c.smallest; n <= 35; ++n) {
    const Shapes shapes = c.resize(n);
    const std::string what = wengert::detail::text("size ", n);
    expect_values<double>(c, shapes, what);
    expect_values<float>(c, shapes, what);
    if (c.differentiable) {
      const Arrays x = values_for(c, shapes);
      const auto report = check_gradient(c, x,
                                         {.rtol = c.gradient_tolerance,
                                          .atol = c.gradient_tolerance,
                                          .projections = 2,
                                          .every_coordinate = 4});
      EXPECT_TRUE(report.ok) << c.name << ", " << what << ", " << report.message;
      expect_float_gradient(c, x, ", " + what);
    }
    if (HasFailure()) return;
  }
}

template <class T>
void expect_same_on_view(const Case& c, std::size_t i, Layout layout, Arrays x) {
  if (layout == Layout::expanded) {
    const int axis = stretched_axis(x[i].shape);
    if (axis < 0 || c.inputs[i].kind == Input::Kind::indices) return;
    x[i] = made_constant_along(x[i], axis);
  }
  Anys dense = operands<T>(c, x), viewed = dense;
  viewed[i] = operand<T>(c, i, x[i], layout);
  const Outcome expected = run<T>(c, dense), got = run<T>(c, viewed);
  const std::string where =
      c.name + ", input " + std::to_string(i) + " " + layout_name(layout) + " in " + type_name<T>() + ", ";
  const double tolerance = tolerance_of<T>(c);
  const std::string value = difference(got.y, expected.y, tolerance);
  EXPECT_TRUE(value.empty()) << where << value;
  const std::string slope = difference(got.dx, expected.dx, 10 * tolerance);
  EXPECT_TRUE(slope.empty()) << where << slope;
}

TEST_P(Rows, GiveTheSameOnViews) {
  for (std::size_t i = 0; i < row().inputs.size(); ++i)
    for (const Layout layout : {Layout::transposed, Layout::sliced, Layout::stepped, Layout::expanded}) {
      expect_same_on_view<double>(row(), i, layout, values_for(row()));
      expect_same_on_view<float>(row(), i, layout, values_for(row()));
    }
}

template <class T>
void expect_point(const Case& c, const Point& p, const std::string& where) {
  const Anys x = operands<T>(c, p.inputs);
  const Outcome got = run<T>(c, x, &p.dy);
  const double tolerance = tolerance_of<T>(c);
  const std::string value = difference(got.y, p.y, tolerance);
  EXPECT_TRUE(value.empty()) << where << value;
  for (std::size_t i = 0; i < p.gradients.size(); ++i) {
    if (!p.gradients[i]) continue;
    // An input that no gradient reached has gradient 0.
    const Array dx = got.dx[i].value_or(Array(p.inputs[i].shape));
    const std::string slope = difference(dx, *p.gradients[i], 10 * tolerance);
    EXPECT_TRUE(slope.empty()) << where << "gradient of input " << i << ", " << slope;
  }
}

TEST_P(RowsWithPoints, AreAsWorkedOutByHand) {
  int number = 0;
  for (const Point& p : row().points) {
    const std::string where = row().name + ", point " + std::to_string(number++) + " in ";
    if (p.in != Point::In::in_float) expect_point<double>(row(), p, where + "double, ");
    if (p.in != Point::In::in_double) expect_point<float>(row(), p, where + "float, ");
  }
}

}  // namespace
}  // namespace cases
