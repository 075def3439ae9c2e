// Dropout, with the random generator passed by the caller. Floor: ops.
#pragma once

#include <wengert/core/record.hpp>
#include <wengert/kernels/dropout.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

inline void check_dropout(double p) {
  if (!(p >= 0 && p <= 1))
    fail<ValueError>("dropout", "p is out of range; p is ", p, "; expected 0 <= p <= 1");
}

template <Field T>
struct DropoutRule {
  static constexpr std::string_view name = "dropout";
  Saved<Byte> keep;
  T scale;
  auto saved() const { return std::tie(keep); }

  void backward(Vjp& v) const {  // dx += dy * scale where kept
    const T* const dy = v.dy<T>();
    const Index n = v.size();
    const GradRef<T> dx = v.into_over_dy<T>(0);
    kernels::dropout_vjp(dy, keep.data(), n, scale, dx.data, dx.add);
  }
};

}  // namespace detail

/// Inverted dropout: each element becomes 0 with probability p (to 2^-32), and x / (1 - p) otherwise.
///   y   = x / (1 - p) where kept, else 0, also where x is NaN
///   dx += dy / (1 - p) where kept
/// Returns x itself when not training or when p is 0, and then draws nothing. Which elements are dropped
/// follows from the generator's seed, its counter and the position alone: the same on every platform and at
/// any number of threads; the counter moves on past the words used. Saves a byte an element: drawing again in
/// backward would cost three times as much as reading them. With p = 1 all of y and dx is 0, as in PyTorch.
/// Throws ValueError unless 0 <= p <= 1.
template <Field T>
Tensor<T> dropout(const Tensor<T>& x, double p, Generator& generator, bool training = true) {
  detail::check_dropout(p);
  if (!training || p == 0) return x;
  const Recorder rec("dropout", x);
  const Tensor<T> xc = x.packed();
  const Index n = x.size();
  Tensor<T> y(x.shape());
  Tensor<Byte> keep(x.shape());
  generator.fill<1>(0, [](const std::uint32_t*, std::size_t, std::size_t) {});  // to the start of a block
  const kernels::DropoutDraw draw{generator.seed(), generator.counter() / 4,
                                  static_cast<std::uint32_t>(std::min(p * 0x1p32, 0x1p32 - 1))};
  generator.set_counter(generator.counter() + kernels::DropoutDraw::words(n));
  const T scale = static_cast<T>(p < 1 ? 1 / (1 - p) : 0);
  kernels::dropout(draw, xc.data(), n, scale, keep.fresh_data(), y.fresh_data());
  if (rec) rec.record(y, detail::DropoutRule<T>{save(keep), scale});
  return y;
}

}  // namespace wengert::inline WENGERT_ISA
