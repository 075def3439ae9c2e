// The rows: one row an operator feeds its reference test, gradient check, views, vector tails, extremes,
// laws, the benchmark and the libtorch oracle.
//
// How to add a row. Rows live in tests/cases/<family>_cases.cpp; a file that appears is found by the next
// build, and its rows register themselves:
//
//   #include <wengert/ops/elementwise.hpp>
//   #include "cases/case.hpp"
//   namespace cases {
//   const Rows elementwise_rows([] {
//     row("mul", [](const auto& a, const auto& b) { return a * b; },   // the operator, over Tensors
//         real({3, 4}), real({4}, -2, 2))                              // its inputs: shape, lo..hi
//         .reference(elementwise([](double a, double b) { return a * b; }))  // plain doubles, on Arrays
//         .resizable()                                    // last axes of all inputs may have 1..35 elements
//         .at({2, 3}, 6, {3, 2})                          // extremes: inputs, y, gradients for dy = 1
//         .fault<wengert::ShapeError>({{3, 4}, {3}}, "mul: shapes do not broadcast; ...")   // exact message
//         .bench({{1024, 1024}, {1024}});                 // shapes of the benchmark and the thread test
//     row("gather", [](const auto& x, const auto& i) { return gather(x, i, 0); },
//         real({5, 3}), indices({4}, 5))                  // a Tensor<Index> of values 0..4
//         .reference([](const Array& x, const Array& i) { ... return y; })
//         .sizes([](Index n) { return std::vector<Shape>{{5, n}, {4}}; });   // shapes of size n
//   });
//   }
//
// A second row of one operator has a name such as "sum/axis0". Where the operator has a kink:
// real(...).away_from({0}); where ties decide: real(...).distinct(), which makes all such inputs of a row
// differ in every element. Inputs without gradient: real(...).constant(), indices, mask, labels of your own
// by .values(...). Dropout and the like make their generator inside the callable. An operator of several
// results has a row for each. Only Field results are differentiated; others get value and view tests.
//
// To run the rows of one family by hand, compile and link two files: tests/ops/cases_test.cpp and
// tests/cases/<family>_cases.cpp, with -Itests, -lgtest_main and -lgtest; --gtest_filter='*mul*' picks rows.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>

#include "cases/layout.hpp"

namespace cases {

using Call = std::function<Any(std::span<const Any>)>;
using Shapes = std::vector<Shape>;

/// What one operand looks like.
struct Input {
  enum class Kind { real, indices, mask };
  Kind kind;
  Shape shape;
  double lo, hi;  // indices: lo <= i < hi
  bool differentiable;
  Any (*make)(const Array&, Layout) = nullptr;  // of integers and masks; null for reals
  bool is_distinct = false;
  std::vector<double> kinks = {};
  std::vector<double> explicit_values = {};  // repeated until the shape is filled
};

namespace detail {

/// Options of an input that keep its static type, which decides the tensor's element type.
template <class Self>
struct Fluent : Input {
  /// All elements of such inputs of a row differ.
  Self distinct() const {
    return with([](Input& i) { i.is_distinct = true; });
  }
  /// These elements, in row-major order, repeated when the shape holds more.
  Self values(std::vector<double> v) const {
    return with([&](Input& i) { i.explicit_values = std::move(v); });
  }

 protected:
  template <class F>
  Self with(F f) const {
    Self copy = static_cast<const Self&>(*this);
    f(copy);
    return copy;
  }
};

}  // namespace detail

struct Real : detail::Fluent<Real> {
  template <class T>
  using element = T;
  /// Keeps elements at least 0.05 away from these points, where the operator has a kink.
  Real away_from(std::vector<double> points) const {
    return with([&](Input& i) { i.kinks = std::move(points); });
  }
  /// The operator gives this input no gradient.
  Real constant() const {
    return with([](Input& i) { i.differentiable = false; });
  }
};
template <class E>
struct Whole : detail::Fluent<Whole<E>> {
  template <class T>
  using element = E;
};

/// Tensor<T> of reals in lo..hi, differentiated.
inline Real real(const Shape& shape, double lo = -2, double hi = 2) {
  return {{Input{Input::Kind::real, shape, lo, hi, true}}};
}
/// Tensor<Index>, or another integer type, of values lo..hi - 1.
template <class E = Index>
Whole<E> indices(const Shape& shape, Index hi, Index lo = 0) {
  return {{Input{Input::Kind::indices, shape, static_cast<double>(lo), static_cast<double>(hi), false,
                 &make_tensor<E>}}};
}
/// Tensor<Byte>, or another element type, of zeros and ones.
template <class E = Byte>
Whole<E> mask(const Shape& shape) {
  return {{Input{Input::Kind::mask, shape, 0, 1, false, &make_tensor<E>}}};
}

/// Inputs whose result and gradients were derived by hand. An empty gradient is not compared.
struct Point {
  enum class In { both, in_float, in_double };
  std::vector<Array> inputs;
  Array y;
  std::vector<std::optional<Array>> gradients;
  Array dy;
  In in = In::both;
};
/// Shapes that the operator refuses, and how.
struct Fault {
  Shapes shapes;
  std::function<bool(const std::exception&)> type_matches;
  std::string message;
};

struct Case {
  std::string name;
  std::vector<Input> inputs;
  Call in_float, in_double;
  bool differentiable = true;
  std::function<Array(const std::vector<Array>&)> reference;
  std::function<Shapes(Index)> resize;
  Index smallest = 1;
  std::vector<Point> points;
  std::vector<Fault> faults;
  double float_tolerance = 1e-5, double_tolerance = 1e-12;  // relative to 1 + |expected|
  double gradient_tolerance = 1e-6;  // of central differences, relative to 1 + |expected|
  Shapes bench;
  bool allocates = false;

  Shapes shapes() const {
    Shapes out;
    for (const Input& i : inputs) out.push_back(i.shape);
    return out;
  }
};

namespace detail {

inline std::list<Case>& registry() {
  static std::list<Case> rows;
  return rows;
}

template <class T, class F, class... In, std::size_t... i>
Any call(const F& f, std::span<const Any> x, std::index_sequence<i...>) {
  return Any(f(std::get<Tensor<typename In::template element<T>>>(x[i])...));
}

}  // namespace detail

/// A row under construction; see the top of this file.
template <class F, class... In>
class Row {
 public:
  Row(std::string name, F f, const In&... inputs) : case_(detail::registry().emplace_back()) {
    case_.name = std::move(name);
    case_.inputs = {inputs...};
    using Numbers = std::index_sequence_for<In...>;
    case_.in_float = [f](std::span<const Any> x) { return detail::call<float, F, In...>(f, x, Numbers()); };
    case_.in_double = [f](std::span<const Any> x) { return detail::call<double, F, In...>(f, x, Numbers()); };
    using Result = std::invoke_result_t<F, const Tensor<typename In::template element<double>>&...>;
    case_.differentiable = wengert::Field<typename std::remove_cvref_t<Result>::value_type>;
  }

  /// `r(const Array&...)`, one for each input, to an Array.
  template <class R>
  Row& reference(R r) {
    case_.reference = [r](const std::vector<Array>& x) {
      return [&]<std::size_t... i>(std::index_sequence<i...>) { return Array(r(x[i]...)); }
      (std::index_sequence_for<In...>());
    };
    return *this;
  }
  /// The last axis of every input, where it is not 1, may have any size from `smallest` (0: also none).
  Row& resizable(Index smallest = 1) {
    const Shapes shapes = case_.shapes();
    return sizes(
        [shapes](Index n) {
          Shapes out = shapes;
          for (Shape& s : out)
            if (s.rank() > 0 && s.back() != 1) s[s.rank() - 1] = n;
          return out;
        },
        smallest);
  }
  /// The shapes of all inputs for a vector axis of n elements, n >= smallest.
  Row& sizes(std::function<Shapes(Index)> shapes, Index smallest = 1) {
    case_.resize = std::move(shapes);
    case_.smallest = smallest;
    return *this;
  }
  /// For element-wise operators: numbers, y and the gradients for dy = 1, tried at every vector position.
  Row& at(std::vector<double> x, double y, std::vector<double> dx = {}, Point::In in = Point::In::both) {
    const Shape shape{37};  // a vector body and a tail, at every width
    Point p;
    for (const double v : x) p.inputs.emplace_back(shape, v);
    p.y = Array(shape, y);
    for (const double g : dx) p.gradients.emplace_back(Array(shape, g));
    p.dy = Array(shape, 1);
    p.in = in;
    case_.points.push_back(std::move(p));
    return *this;
  }
  /// Inputs, y and gradients (nullopt: not compared) for dy, by default 1 everywhere.
  Row& point(std::vector<Array> x, Array y, std::vector<std::optional<Array>> dx = {},
             std::optional<Array> dy = {}, Point::In in = Point::In::both) {
    Array seed = dy ? *dy : Array(y.shape, 1);
    case_.points.push_back({std::move(x), std::move(y), std::move(dx), std::move(seed), in});
    return *this;
  }
  /// Inputs of these shapes throw an E with exactly this message, and leave the tape as it was.
  template <class E>
  Row& fault(Shapes shapes, std::string message) {
    case_.faults.push_back({std::move(shapes),
                            [](const std::exception& e) { return dynamic_cast<const E*>(&e) != nullptr; },
                            std::move(message)});
    return *this;
  }
  /// Largest error of values, relative to 1 + |expected|; float gradients may have ten times as much.
  Row& tolerance(double in_float, double in_double = 1e-12) {
    case_.float_tolerance = in_float;
    case_.double_tolerance = in_double;
    return *this;
  }
  /// Largest difference from central differences, relative to 1 + |expected|.
  Row& gradient_tolerance(double t) {
    case_.gradient_tolerance = t;
    return *this;
  }
  /// Shapes of the benchmark, and of the test with several threads.
  Row& bench(Shapes shapes) {
    case_.bench = std::move(shapes);
    return *this;
  }
  /// The callable itself asks the heap for memory (a std::vector of tensors, say).
  Row& allocates() {
    case_.allocates = true;
    return *this;
  }

 private:
  Case& case_;
};

/// Adds a row: a generic callable over tensors and a description of each operand.
template <class F, class... In>
Row<F, In...> row(std::string name, F f, const In&... inputs) {
  return Row<F, In...>(std::move(name), f, inputs...);
}

/// All rows of the program, by name. Throws when two have one name.
inline std::vector<const Case*> all_cases() {
  std::vector<const Case*> out;
  for (const Case& c : detail::registry()) out.push_back(&c);
  std::sort(out.begin(), out.end(), [](const Case* a, const Case* b) { return a->name < b->name; });
  for (std::size_t i = 1; i < out.size(); ++i)
    if (out[i]->name == out[i - 1]->name) throw std::logic_error("two rows are named " + out[i]->name);
  return out;
}

/// Runs a function that adds rows, when the program starts.
struct Rows {
  explicit Rows(void (*add)()) { add(); }
};

}  // namespace cases
