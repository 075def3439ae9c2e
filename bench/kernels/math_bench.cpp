// Elements a second of the functions on Vec, of dual numbers, and of the random fills, on arrays that stay in
// L1.
#include <cstddef>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <wengert/base/random.hpp>
#include <wengert/kernels/dual.hpp>

namespace {

using wengert::Byte;
using wengert::Dual;
using wengert::Index;
using wengert::kernels::Vec;

constexpr Index elements = 2048;

template <class T>
std::vector<T> inputs(T lo, T hi) {
  std::vector<T> x(static_cast<std::size_t>(elements));
  wengert::Generator(1).fill_uniform(x.data(), x.size(), lo, hi);
  return x;
}

template <class T, class F>
void add(const std::string& name, F f, double lo = -5, double hi = 5) {
  benchmark::RegisterBenchmark((name + (sizeof(T) == 4 ? "/float" : "/double")).c_str(),
                               [=](benchmark::State& state) {
                                 const auto x = inputs<T>(static_cast<T>(lo), static_cast<T>(hi));
                                 auto y = x;
                                 const T* in = x.data();
                                 T* out = y.data();
                                 for (auto _ : state) {
                                   for (Index i = 0; i < elements; i += Vec<T>::lanes)
                                     f(Vec<T>::load(in + i)).store(out + i);
                                   benchmark::ClobberMemory();
                                 }
                                 state.SetItemsProcessed(state.iterations() * elements);
                               });
}

template <class F>
void add_both(const std::string& name, F f, double lo = -5, double hi = 5) {
  add<float>(name, f, lo, hi);
  add<double>(name, f, lo, hi);
}

// tanh(x * w + b) on dual numbers: the value and three slopes of each element.
void lambda_slopes(benchmark::State& state) {
  using V = Vec<float>;
  using D = Dual<V, 3>;
  const auto f = [](auto x, auto w, auto b) { return tanh(x * w + b); };
  const auto x = inputs<float>(-1, 1), w = inputs<float>(-2, 2), b = inputs<float>(0, 1);
  auto dx = x, dw = w, db = b;
  float *px = dx.data(), *pw = dw.data(), *pb = db.data();
  for (auto _ : state) {
    for (Index i = 0; i < elements; i += V::lanes) {
      const D y = f(D::variable(V::load(&x[static_cast<std::size_t>(i)]), 0),
                    D::variable(V::load(&w[static_cast<std::size_t>(i)]), 1),
                    D::variable(V::load(&b[static_cast<std::size_t>(i)]), 2));
      y.d[0].store(px + i);
      y.d[1].store(pw + i);
      y.d[2].store(pb + i);
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * elements);
}

template <class T, class F>
void add_fill(const char* name, F fill) {
  benchmark::RegisterBenchmark(name, [=](benchmark::State& state) {
    std::vector<T> y(static_cast<std::size_t>(elements));
    wengert::Generator g(1);
    for (auto _ : state) {
      fill(g, y.data(), y.size());
      benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * elements);
  });
}

}  // namespace

int main(int argc, char** argv) {
  add_both("exp", [](auto x) { return exp(x); });
  add_both("expm1", [](auto x) { return expm1(x); });
  add_both(
      "log", [](auto x) { return log(x); }, 0.1, 10);
  add_both(
      "log1p", [](auto x) { return log1p(x); }, 0, 10);
  add_both("tanh", [](auto x) { return tanh(x); });
  add_both("sigmoid", [](auto x) { return sigmoid(x); });
  add_both("erf", [](auto x) { return erf(x); });
  add_both("gelu", [](auto x) { return gelu(x); });
  add_both("gelu_tanh", [](auto x) { return gelu_tanh(x); });
  add_both("silu", [](auto x) { return silu(x); });
  add_both("softplus", [](auto x) { return softplus(x); });
  add_both("sin", [](auto x) { return sin(x); });
  add_both(
      "rsqrt", [](auto x) { return rsqrt(x); }, 0.1, 10);
  add_both(
      "pow(x, 2.5)", [](auto x) { return pow(x, 2.5); }, 0.1, 10);
  benchmark::RegisterBenchmark("slopes of tanh(x * w + b)/float", lambda_slopes);
  using Size = std::size_t;
  add_fill<float>("normal/float", [](auto& g, float* p, Size n) { g.fill_normal(p, n, 0.f, 1.f); });
  add_fill<float>("uniform/float", [](auto& g, float* p, Size n) { g.fill_uniform(p, n, 0.f, 1.f); });
  add_fill<double>("uniform/double", [](auto& g, double* p, Size n) { g.fill_uniform(p, n, 0.0, 1.0); });
  add_fill<Byte>("bernoulli", [](auto& g, Byte* p, Size n) { g.fill_bernoulli(p, n, 0.1); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
