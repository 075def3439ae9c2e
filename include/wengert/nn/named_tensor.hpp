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

/// Where `name` is first in `list`, or its size.
template <Scalar T>
std::size_t find_named(const std::vector<NamedTensor<T>>& list, const std::string& name) {
  std::size_t i = 0;
  while (i < list.size() && list[i].name != name) ++i;
  return i;
}

/// Copies each tensor of `from` into the one of its name in `to`, once all names and shapes are known to
/// agree. Throws ValueError naming what is missing, unexpected or double, ShapeError on the first shape that
/// differs, and then writes nothing.
template <Scalar T>
void load_named(std::string_view op, const std::vector<NamedTensor<T>>& from,
                std::vector<NamedTensor<T>> to) {
  std::vector<std::string> missing, unexpected, twice;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (find_named(from, from[i].name) != i)
      twice.push_back(from[i].name);
    else if (find_named(to, from[i].name) == to.size())
      unexpected.push_back(from[i].name);
  }
  for (const NamedTensor<T>& own : to)
    if (find_named(from, own.name) == from.size()) missing.push_back(own.name);
  if (!missing.empty() || !unexpected.empty() || !twice.empty())
    fail<ValueError>(op, "names differ", name_list("missing:", missing), name_list("unexpected:", unexpected),
                     name_list("given twice:", twice), "; expected the ", to.size(), " names of state()");
  for (const NamedTensor<T>& own : to)
    if (const Tensor<T>& given = from[find_named(from, own.name)].tensor; given.shape() != own.tensor.shape())
      fail<ShapeError>(op, "shapes differ for ", own.name, "; given is ", given.shape(), ", own is ",
                       own.tensor.shape(), "; expected equal shapes");
  for (NamedTensor<T>& own : to) own.tensor.copy_from(from[find_named(from, own.name)].tensor.detach());
}

}  // namespace detail

}  // namespace wengert::inline WENGERT_ISA
