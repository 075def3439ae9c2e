// Dropout as a module. Floor: nn.
#pragma once

#include <wengert/nn/module.hpp>
#include <wengert/ops/dropout.hpp>

namespace wengert::inline WENGERT_ISA::nn {

/// In training, each element becomes 0 with probability p and x / (1 - p) otherwise; x itself in evaluation.
/// Owns a generator, seeded by 64 bits drawn from the one passed; a copy of the module draws what this one
/// would. Throws ValueError unless 0 <= p <= 1.
class Dropout : public Module<Dropout> {
 public:
  static constexpr bool serves_every_type = true;

  Dropout(double p, Generator& generator) : p_(p), generator_(seed(p, generator)) {}

  template <Field T>
  Tensor<T> operator()(const Tensor<T>& x) {
    Tensor<T> y = dropout(x, p_, generator_, training());
    noted(y);
    return y;
  }

  double p() const noexcept { return p_; }
  Generator& generator() noexcept { return generator_; }

  void members(auto& list) { list("generator", generator_); }

 private:
  static std::uint64_t seed(double p, Generator& generator) {
    wengert::detail::check_dropout(p);
    const std::uint64_t high = generator.next();
    return high << 32 | generator.next();
  }

  double p_;
  Generator generator_;
};

}  // namespace wengert::inline WENGERT_ISA::nn
