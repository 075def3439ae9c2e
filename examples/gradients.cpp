// Every way to ask for a gradient, on functions small enough to check by hand.
#include <cmath>
#include <cstdio>
#include <vector>

#include <wengert/wengert.hpp>

#include "common/output.hpp"

namespace wg = wengert;

namespace {

int wrong = 0;

/// Prints a tensor, and notes when it is not what the mathematics says.
template <class T>
void show(const char* what, const wg::Tensor<T>& got, const std::vector<T>& expected) {
  bool right = got.size() == static_cast<wg::Index>(expected.size());
  const std::vector<T> values = got.to_vector();
  for (std::size_t i = 0; right && i < values.size(); ++i)
    right = std::abs(values[i] - expected[i]) < T(1e-5);
  std::printf("%-46s %s%s\n", what, wg::to_string(got).c_str(), right ? "" : "   WRONG");
  wrong += right ? 0 : 1;
}

void of_a_function() {
  const auto f = [](const auto& x, const auto& w) { return sum(square(x) * w); };
  const auto x = wg::tensor<float>({1, 2}), w = wg::tensor<float>({3, 4});
  const auto [y, dx, dw] = wg::value_and_grad(f, x, w);
  show("value_and_grad: sum(x^2 w)", y, {19});
  show("  dx = 2 x w", dx, {6, 16});
  show("  dw = x^2", dw, {1, 4});
}

void of_leaves() {
  auto w = wg::tensor<float>({1, 2}), unused = wg::tensor<float>({5});
  w.requires_grad(true);
  unused.requires_grad(true);
  wg::GradStore grads;
  wg::backward(sum(square(w)), grads);
  show("backward: d sum(w^2) / dw", grads[w], {2, 4});
  std::printf("%-46s %s\n", "find: does the loss reach it?", grads.find(unused) ? "yes" : "no");
  wrong += grads.find(unused) ? 1 : 0;

  wg::backward(sum(3 * w), grads);
  show("a second backward adds", grads[w], {5, 7});
  grads.zero();
  show("zero: stale gradients read as zeros", grads[w], {0, 0});
}

void of_an_intermediate() {
  auto w = wg::tensor<float>({1, 2});
  w.requires_grad(true);
  wg::GradStore grads;
  auto h = square(w);
  h.retain_grad();
  wg::backward(sum(square(h)), grads);
  show("retain_grad: d sum(h^2) / dh, h = w^2", grads[h], {2, 8});
}

void of_a_tensor_with_a_seed() {
  auto w = wg::tensor<float>({1, 2});
  w.requires_grad(true);
  wg::GradStore grads;
  wg::backward(square(w), wg::tensor<float>({10, 100}), grads);
  show("a seed for each element: 2 w seed", grads[w], {20, 400});
}

void twice_through_one_tape() {
  auto w = wg::tensor<float>({1, 2});
  w.requires_grad(true);
  wg::GradStore grads;
  const auto y = sum(square(w));
  wg::backward(y, grads, {.retain = true});
  wg::backward(y, grads);
  show("retain: two backwards through one tape", grads[w], {4, 8});
}

void of_parts_that_count_as_constants() {
  auto w = wg::tensor<float>({1, 2});
  w.requires_grad(true);
  wg::GradStore grads;
  wg::backward(sum(w * square(w).detach()), grads);
  show("detach: d sum(w c) / dw with c = w^2", grads[w], {1, 4});

  const auto frozen = wg::no_grad([&] { return square(w); });
  std::printf("%-46s %s\n", "no_grad: is it recorded?", frozen.requires_grad() ? "yes" : "no");
  wrong += frozen.requires_grad() ? 1 : 0;
}

void of_a_batch_in_parts() {
  auto w = wg::tensor<float>({{1}, {2}});
  w.requires_grad(true);
  const auto x = wg::tensor<float>({{1, 0}, {0, 1}, {1, 1}, {2, 0}});
  const auto y = wg::tensor<float>({{0}, {0}, {0}, {0}});

  wg::GradStore whole, parts;
  wg::backward(wg::mse_loss(matmul(x, w), y), whole);
  for (wg::Index i = 0; i < 4; i += 2)  // half the memory, the same gradient
    wg::backward(wg::mse_loss(matmul(slice(x, 0, i, i + 2), w), slice(y, 0, i, i + 2)) / 2, parts);
  show("micro-batches: the sum over parts", parts[w], whole[w].to_vector());
}

void of_a_part_computed_again() {
  auto w = wg::tensor<float>({1, 2});
  w.requires_grad(true);
  wg::GradStore grads;
  const auto block = [](const auto& x) { return square(square(x)); };
  wg::backward(sum(wg::checkpoint(block, w)), grads);  // square(x) is not kept, but computed again
  show("checkpoint: d sum(w^4) / dw", grads[w], {4, 32});
}

void forward_mode() {
  using D = wg::Dual<double>;
  const auto f = [](const auto& x) { return sum(x * x * x); };

  // A dual number carries a value and its derivative in one direction, here v = (1, 0). There is no tape.
  const wg::Tensor<D> x({2}, {D(1, 1), D(2, 0)});
  show("jvp: d f / dv of f = sum(x^3)", wg::scalar(f(x).item().d[0]), {3.0});

  // The ordinary tape over dual numbers gives the gradient and, beside it, the Hessian times v.
  const auto [y, dx] = wg::value_and_grad(f, x);
  show("gradient 3 x^2", wg::tensor<double>({dx.at(0).value, dx.at(1).value}), {3.0, 12.0});
  show("Hessian times v", wg::tensor<double>({dx.at(0).d[0], dx.at(1).d[0]}), {6.0, 0.0});
}

void of_nothing_is_refused() {
  wg::GradStore grads;
  try {
    wg::backward(sum(wg::tensor<float>({1, 2})), grads);
    ++wrong;
  } catch (const wg::TapeError& e) {
    std::printf("%s\n", e.what());
  }
}

}  // namespace

int main() {
  of_a_function();
  of_leaves();
  of_an_intermediate();
  of_a_tensor_with_a_seed();
  twice_through_one_tape();
  of_parts_that_count_as_constants();
  of_a_batch_in_parts();
  of_a_part_computed_again();
  forward_mode();
  of_nothing_is_refused();
  return wrong + (example::output_is_written("gradients") ? 0 : 1);
}
