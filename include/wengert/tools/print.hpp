// Printing tensors as NumPy does: aligned columns, large ones elided. Floor: tools.
#pragma once

#include <cmath>
#include <cstdio>
#include <iosfwd>
#include <string>
#include <vector>

#include <wengert/core/tensor.hpp>

namespace wengert::inline WENGERT_ISA {

/// How tensors are printed.
struct PrintOptions {
  int precision = 4;       ///< digits after the point, at most
  Index threshold = 1000;  ///< tensors of more elements are elided
  Index edge_items = 3;    ///< entries shown at each end of an elided axis
  int width = 80;          ///< columns before a row of numbers goes on in the next line
};

namespace detail {

/// The notation that serves all numbers of one tensor.
class NumberFormat {
 public:
  NumberFormat(const std::vector<double>& numbers, int precision) : precision_(std::clamp(precision, 0, 17)) {
    double largest = 0, smallest = HUGE_VAL;
    for (const double v : numbers) {
      if (!std::isfinite(v) || v == 0) continue;
      largest = std::max(largest, std::abs(v));
      smallest = std::min(smallest, std::abs(v));
    }
    scientific_ = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1e3));
    int needed = 0;
    for (const double v : numbers)
      if (std::isfinite(v)) needed = std::max(needed, decimals(v));
    precision_ = needed;
  }

  std::string operator()(double v) const {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    std::string s = write(v, precision_);
    if (precision_ == 0) s.insert(scientific_ ? s.find('e') : s.size(), ".");
    return s;
  }

 private:
  std::string write(double v, int precision) const {
    char text[512];  // 309 digits before the point of the largest double
    const int n = std::snprintf(text, sizeof text, scientific_ ? "%.*e" : "%.*f", precision, v);
    return std::string(text, static_cast<std::size_t>(n));
  }
  /// Digits after the point without trailing zeros, up to the present precision.
  int decimals(double v) const {
    std::string s = write(v, precision_);
    s.erase(std::min(s.find('e'), s.size()));
    const std::size_t point = s.find('.');
    if (point == std::string::npos) return 0;
    return static_cast<int>(s.find_last_not_of('0') - point);
  }

  bool scientific_ = false;
  int precision_;
};

/// Lays out cells that are already text.
class CellPrinter {
 public:
  CellPrinter(const Shape& shape, bool elide, const PrintOptions& options)
      : shape_(shape), elide_(elide), options_(options) {}

  /// The positions of an axis that are shown; -1 stands for those left out.
  std::vector<Index> shown(int axis) const {
    const Index n = shape_[axis], edge = std::max<Index>(1, options_.edge_items);
    std::vector<Index> out;
    const bool skips = elide_ && n > 2 * edge;
    for (Index i = 0; i < n; ++i) {
      if (skips && i == edge) {
        out.push_back(-1);
        i = n - edge;
      }
      out.push_back(i);
    }
    return out;
  }

  /// Calls f(index) for the elements shown, in order.
  template <class F>
  void visit(Shape& at, int axis, F f) const {
    if (axis == shape_.rank()) return f(at);
    for (const Index i : shown(axis)) {
      if (i < 0) continue;
      at[axis] = i;
      visit(at, axis + 1, f);
    }
  }

  std::string print(std::vector<std::string> cells) {
    std::size_t widest = 0;
    for (const std::string& c : cells) widest = std::max(widest, c.size());
    for (std::string& c : cells) c.insert(0, widest - c.size(), ' ');
    cells_ = std::move(cells);
    next_ = 0;
    out_.clear();
    if (shape_.rank() == 0) return cells_.at(0);
    axis(0);
    return std::move(out_);
  }

 private:
  void axis(int a) {
    out_ += '[';
    const bool row = a + 1 == shape_.rank();
    const std::string indent(static_cast<std::size_t>(a) + 1, ' ');
    bool first = true;
    for (const Index i : shown(a)) {
      const std::string_view cell = i < 0 ? std::string_view("...")
                                    : row ? cells_[next_]
                                          : std::string_view();
      if (row) {
        const std::size_t line = out_.size() - (out_.rfind('\n') + 1);  // npos + 1 is 0
        const bool wraps = line + cell.size() + 3 > static_cast<std::size_t>(std::max(options_.width, 1));
        if (!first) out_ += wraps ? ",\n" + indent : ", ";
        out_ += cell;
        if (i >= 0) ++next_;
      } else {
        if (!first) out_ += ',' + std::string(static_cast<std::size_t>(shape_.rank() - 1 - a), '\n') + indent;
        if (i < 0)
          out_ += cell;
        else
          axis(a + 1);
      }
      first = false;
    }
    out_ += ']';
  }

  const Shape& shape_;
  bool elide_;
  PrintOptions options_;
  std::vector<std::string> cells_;
  std::size_t next_ = 0;
  std::string out_;
};

template <Scalar T>
std::vector<std::string> format_cells(const std::vector<T>& values, int precision) {
  std::vector<std::string> cells;
  cells.reserve(values.size());
  if constexpr (std::is_floating_point_v<T>) {
    const std::vector<double> numbers(values.begin(), values.end());
    const NumberFormat format(numbers, precision);
    for (const double v : numbers) cells.push_back(format(v));
  } else if constexpr (requires(const T& v) { format_cells(std::vector{v.value}, precision); }) {
    std::vector<std::remove_cvref_t<decltype(values[0].value)>> numbers;  // a dual number shows its value
    for (const T& v : values) numbers.push_back(v.value);
    return format_cells(numbers, precision);
  } else {
    for (const T& v : values) {
      if constexpr (std::is_same_v<T, bool>)
        cells.push_back(v ? "true" : "false");
      else if constexpr (std::is_integral_v<T>)
        cells.push_back(std::to_string(v));
      else if constexpr (requires { v.str(); })
        cells.push_back(v.str());
      else
        cells.push_back("?");
    }
  }
  return cells;
}

}  // namespace detail

/// Element type, shape and values of x, as NumPy prints them:
///   float32 (2, 3)
///   [[ 1.0,  2.5, -3.0],
///    [ 0.0,  nan,  inf]]
/// Numbers of one tensor share one notation, with as many digits after the point as they need, up to
/// `precision`; scientific where they are large, small, or far apart. Axes of large tensors are elided.
template <Scalar T>
std::string to_string(const Tensor<T>& x, const PrintOptions& options = {}) {
  std::string head = std::string(dtype_name<T>()) + ' ' + x.shape().str();
  if (x.empty()) return head + " []";
  detail::CellPrinter printer(x.shape(), x.size() > options.threshold, options);
  std::vector<T> values;
  Shape at = Shape::filled(x.rank(), 0);
  printer.visit(at, 0, [&](const Shape& index) {
    Index offset = 0;
    for (int i = 0; i < x.rank(); ++i) offset += index[i] * x.strides()[i];
    values.push_back(x.data()[offset]);
  });
  const std::string body = printer.print(detail::format_cells<T>(values, options.precision));
  return head + (x.rank() < 2 && body.find('\n') == body.npos ? ' ' : '\n') + body;
}

/// Writes `to_string(x)`; <ostream> is left to the caller to include.
template <class Traits, Scalar T>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const Tensor<T>& x) {
  return out << std::string_view(to_string(x));
}

}  // namespace wengert::inline WENGERT_ISA
