// Three ways to add an operator of one's own, each proved by gradcheck.
#include <cstdio>
#include <tuple>

#include <wengert/wengert.hpp>

#include "common/output.hpp"

namespace wg = wengert;

namespace {

// 1. A function of single numbers, as a lambda: one fused, vectorised record. Its derivative comes from
// running
//    the lambda on dual numbers.
template <wg::Field T>
wg::Tensor<T> swish(const wg::Tensor<T>& x, const wg::Tensor<T>& beta) {
  return wg::map([](auto v, auto b) { return v * sigmoid(b * v); }, x, beta);
}

// 2. A function of whole tensors, as a struct with a value and a vector-Jacobian product. Both may use every
//    operator of the library; nothing inside them is recorded.
struct UnitRows {
  static constexpr std::string_view name = "unit_rows";

  /// y = x / |x|, row by row of x (n, m).
  template <wg::Field T>
  wg::Tensor<T> value(const wg::Tensor<T>& x) const {
    return x / norms(x);
  }
  /// dx = (dy - y * sum(dy * y)) / |x|
  template <wg::Field T>
  wg::Tensor<T> vjp(const wg::Tensor<T>& dy, const wg::Tensor<T>& y, const wg::Tensor<T>& x) const {
    return (dy - y * sum(dy * y, 1, true)) / norms(x);
  }

 private:
  template <wg::Field T>
  static wg::Tensor<T> norms(const wg::Tensor<T>& x) {
    return sqrt(sum(square(x), 1, true));
  }
};

// 3. A raw record: plain loops over memory, and a rule that adds to the gradient in place. This is how the
//    library's own operators are written.
template <wg::Field T>
struct RunningSumRule {
  static constexpr std::string_view name = "running_sum";
  void backward(wg::Vjp& v) {  // dx[k] += dy[k] + dy[k + 1] + ...
    const T* const dy = v.dy<T>();
    const wg::GradRef<T> dx = v.into<T>(0);
    T sum(0);
    for (wg::Index k = v.size(); k-- > 0;) {
      sum += dy[k];
      dx.data[k] = dx.add ? dx.data[k] + sum : sum;
    }
  }
};

/// y[k] = x[0] + ... + x[k] for x of rank 1. Throws ShapeError.
template <wg::Field T>
wg::Tensor<T> running_sum(const wg::Tensor<T>& x) {
  if (x.rank() != 1)
    wg::fail<wg::ShapeError>("running_sum", "wrong rank; x is ", x.shape(), "; expected one axis");
  const wg::Recorder rec("running_sum", x);  // refuses stale operands before anything is computed
  const wg::Tensor<T> xc = x.packed();       // without gaps
  wg::Tensor<T> y(x.shape());
  T sum(0);
  for (wg::Index k = 0; k < x.size(); ++k) y.fresh_data()[k] = sum += xc.data()[k];
  if (rec) rec.record(y, RunningSumRule<T>{});
  return y;
}

/// Prints what gradcheck found; 1 when the gradient is wrong.
int show(const char* what, const wg::GradcheckReport& report) {
  std::printf("%-40s %s\n", what, report.ok ? "gradient agrees with differences" : report.message.c_str());
  return report.ok ? 0 : 1;
}

}  // namespace

int main() {
  wg::Generator gen(7);
  const auto x = wg::normal<double>({4, 5}, gen), beta = wg::uniform<double>({5}, gen, 0.5, 2);
  const auto steps = wg::normal<double>({9}, gen);

  int wrong = 0;
  wrong += show("swish: a lambda through map",
                wg::gradcheck([](auto& v, auto& b) { return swish(v, b); }, {x, beta}));
  wrong += show("unit_rows: a struct with value and vjp",
                wg::gradcheck([](auto& v) { return wg::custom(UnitRows(), v); }, x));
  wrong += show("running_sum: a raw record", wg::gradcheck([](auto& v) { return running_sum(v); }, steps));

  // They work like any other operator.
  auto w = wg::tensor<float>({1, 2, 3});
  w.requires_grad(true);
  wg::GradStore grads;
  wg::backward(sum(running_sum(w * w)), grads);
  std::printf("d sum(running_sum(w^2)) / dw = %s\n", wg::to_string(grads[w]).c_str());
  return wrong + (example::output_is_written("operators") ? 0 : 1);
}
