// How well a classifier does on samples it was not trained on.
#pragma once

#include <algorithm>
#include <cstdint>

#include <wengert/data/dataset.hpp>
#include <wengert/ops/arg.hpp>
#include <wengert/ops/cast.hpp>
#include <wengert/ops/losses.hpp>
#include <wengert/ops/reduce.hpp>

#include "training_log.hpp"

namespace example {

/// Loss and accuracy of a model in evaluation, outside the tape, `batch` samples at once. `input(x)` makes of
/// samples what the model takes.
template <class X, class F>
Score evaluate(auto& model, const wengert::data::Dataset<X, std::int64_t>& data, wengert::Index batch,
               F input) {
  using namespace wengert;
  const NoGrad no_grad;
  double loss = 0;
  Index right = 0;
  model.eval();
  for (Index i = 0; i < data.size(); i += batch) {
    const auto [x, y] = data.range(i, std::min(i + batch, data.size()));
    const auto logits = model(input(x));
    loss += static_cast<double>(cross_entropy(logits, y, {.reduction = Reduction::sum}).item());
    right += sum(cast<Index>(argmax(logits, 1) == y)).item();
  }
  model.train();
  const auto n = static_cast<double>(data.size());
  return {loss / n, static_cast<double>(right) / n};
}

}  // namespace example
