// The embedding table as a module. Floor: nn.
#pragma once

#include <wengert/nn/init.hpp>
#include <wengert/nn/module.hpp>
#include <wengert/ops/embedding.hpp>

namespace wengert::inline WENGERT_ISA::nn {

/// y[i, :] = weight[indices[i], :] for indices of any integer type and shape. Weight is (vocabulary, width)
/// and begins normal with mean 0 and deviation 1, PyTorch's default. Throws ShapeError when a size is
/// negative, and as `wengert::embedding`.
template <Field T>
class Embedding : public Module<Embedding<T>, T> {
 public:
  Embedding(Index vocabulary, Index width, Generator& generator)
      : weight(Tensor<T>(detail::checked<T>("embedding", {vocabulary, width}))) {
    init::normal(weight, generator);
  }

  template <IndexScalar I>
  Tensor<T> operator()(const Tensor<I>& indices) const {
    Tensor<T> y = embedding(weight, indices);
    this->noted(y);
    return y;
  }

  void members(auto& list) { list("weight", weight); }

  Parameter<T> weight;
};

}  // namespace wengert::inline WENGERT_ISA::nn
