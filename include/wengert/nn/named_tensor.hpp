// A tensor with a name: what modules and optimizers save, and what checkpoints hold. Floor: nn.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <wengert/core/tensor.hpp>

namespace wengert::inline WENGERT_ISA {

/// A tensor and the name it is saved under, such as "hidden.weight".
template <Scalar T>
struct NamedTensor {
  std::string name;
  Tensor<T> tensor;
};

namespace detail {

inline std::string name_list(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  constexpr std::size_t most = 8;  // names printed
  std::string out = text("; ", what, " ");
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) out += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most) out += text(" and ", names.size() - most, " more");
  return out;
}

/// Copies each tensor of `from` into the one of its name in `to`, once all names and shapes are known to
/// agree. Throws ValueError naming what is missing, unexpected or double, ShapeError on the first shape that
/// differs, and then writes nothing.
template <Scalar T>
void load_named(std::string_view op, const std::vector<NamedTensor<T>>& from,
                std::vector<NamedTensor<T>> to) {
  const auto by_name = [](const NamedTensor<T>* a, const NamedTensor<T>* b) { return a->name < b->name; };
  std::vector<const NamedTensor<T>*> given;
  std::vector<NamedTensor<T>*> own;
  for (const NamedTensor<T>& n : from) given.push_back(&n);
  for (NamedTensor<T>& n : to) own.push_back(&n);
  std::stable_sort(given.begin(), given.end(), by_name);
  std::stable_sort(own.begin(), own.end(), by_name);
  std::vector<std::string> missing, unexpected, twice;
  std::vector<std::pair<const NamedTensor<T>*, NamedTensor<T>*>> pairs;
  std::size_t i = 0, k = 0;
  while (i < given.size() || k < own.size()) {
    if (i > 0 && i < given.size() && given[i]->name == given[i - 1]->name) {
      twice.push_back(given[i++]->name);
    } else if (i == given.size() || (k < own.size() && own[k]->name < given[i]->name)) {
      missing.push_back(own[k++]->name);
    } else if (k == own.size() || given[i]->name < own[k]->name) {
      unexpected.push_back(given[i++]->name);
    } else {
      pairs.emplace_back(given[i++], own[k++]);
    }
  }
  if (!missing.empty() || !unexpected.empty() || !twice.empty())
    fail<ValueError>(op, "names differ", name_list("missing:", missing), name_list("unexpected:", unexpected),
                     name_list("given twice:", twice), "; expected the ", to.size(), " names of state()");
  for (const auto& [source, target] : pairs)
    if (source->tensor.shape() != target->tensor.shape())
      fail<ShapeError>(op, "shapes differ for ", target->name, "; given is ", source->tensor.shape(),
                       ", own is ", target->tensor.shape(), "; expected equal shapes");
  for (const auto& [source, target] : pairs) target->tensor.copy_from(source->tensor.detach());
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA
