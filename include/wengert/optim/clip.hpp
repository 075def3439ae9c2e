// Gradient clipping, in the store and in place. Floor: optim.
#pragma once

#include <cmath>

#include <wengert/core/grad_store.hpp>
#include <wengert/kernels/optim.hpp>

namespace wengert::inline WENGERT_ISA::optim {

/// The Euclidean norm of the gradients of `parameters` taken together; those that no backward has reached
/// count as 0. Squares are summed by blocks, in the same order at any number of threads; large finite
/// gradients do not overflow.
template <Field T>
double grad_norm(const GradStore& grads, const std::vector<Tensor<T>>& parameters) {
  double sum = 0;
  for (const Tensor<T>& p : parameters) {
    const T* const g = grads.template reached<T>(p.place().leaf());
    if (g == nullptr || p.size() == 0) continue;
    const Scratch<double> partial((p.size() + kernels::detail::clip_block - 1) / kernels::detail::clip_block);
    sum += kernels::sum_of_squares(g, p.size(), partial.data());
  }
  return std::sqrt(sum);
}

/// Scales the gradients of `parameters` so that their common norm is at most `max_norm`, and returns the norm
/// they had. The factor is max_norm / (norm + 1e-6), where that is below 1, as in PyTorch. A norm that is not
/// finite is returned and nothing is scaled: the caller decides. Throws ValueError unless max_norm >= 0.
template <Field T>
double clip_grad_norm(GradStore& grads, const std::vector<Tensor<T>>& parameters, double max_norm) {
  if (!(max_norm >= 0))
    fail<ValueError>("clip_grad_norm", "bad max_norm; got ", max_norm, "; expected max_norm >= 0");
  const double norm = grad_norm(grads, parameters);
  const double factor = max_norm / (norm + 1e-6);
  if (!std::isfinite(norm) || !(factor < 1)) return norm;
  for (const Tensor<T>& p : parameters)
    if (T* const g = grads.template reached<T>(p.place().leaf()))
      kernels::scale(g, p.size(), static_cast<T>(factor));
  return norm;
}

/// Clamps each element of the gradients of `parameters` to [-limit, limit]; NaN stays NaN. Throws ValueError
/// unless limit >= 0.
template <Field T>
void clip_grad_value(GradStore& grads, const std::vector<Tensor<T>>& parameters, double limit) {
  if (!(limit >= 0)) fail<ValueError>("clip_grad_value", "bad limit; got ", limit, "; expected limit >= 0");
  for (const Tensor<T>& p : parameters)
    if (T* const g = grads.template reached<T>(p.place().leaf()))
      kernels::clip(g, p.size(), static_cast<T>(limit));
}

}  // namespace wengert::inline WENGERT_ISA::optim
