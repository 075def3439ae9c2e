// The table of a model's modules: names, output shapes, parameters. Floor: nn.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <wengert/base/list.hpp>
#include <wengert/core/tensor.hpp>

namespace wengert::inline WENGERT_ISA::nn::detail {

/// The shapes that modules put out while a summary runs, by module; the last call of each counts.
class OutputShapes {
 public:
  [[gnu::cold, gnu::noinline]] void note(const void* module, const Shape& shape) {
    for (One& one : shapes_)
      if (one.module == module) {
        one.shape = shape;
        return;
      }
    shapes_.push_back({module, shape});
  }
  const Shape* of(const void* module) const noexcept {
    for (const One& one : shapes_)
      if (one.module == module) return &one.shape;
    return nullptr;
  }

  /// While alive, this thread's modules note their outputs in `shapes`.
  class Scope {
   public:
    explicit Scope(OutputShapes& shapes) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OutputShapes* before_;
  };

 private:
  struct One {
    const void* module;
    Shape shape;
  };
  wengert::detail::List<One> shapes_;
};

inline constinit thread_local OutputShapes* output_shapes = nullptr;

inline OutputShapes::Scope::Scope(OutputShapes& shapes) noexcept
    : before_(std::exchange(output_shapes, &shapes)) {}
inline OutputShapes::Scope::~Scope() { output_shapes = before_; }

/// While alive, all modules are evaluated; afterwards each is as it was.
template <class Members>
class EvaluateAll {
 public:
  explicit EvaluateAll(const Members& members) : members_(members) {
    for (const auto& m : members_.modules) {
      trained_.push_back(m.module->training());
      m.module->set_training(false);
    }
  }
  ~EvaluateAll() {
    for (std::size_t i = 0; i < trained_.size(); ++i) members_.modules[i].module->set_training(trained_[i]);
  }
  EvaluateAll(const EvaluateAll&) = delete;
  EvaluateAll& operator=(const EvaluateAll&) = delete;

 private:
  const Members& members_;
  wengert::detail::List<bool> trained_;
};

/// 1234567 as "1,234,567".
inline std::string grouped(Index n) {
  char text[32];
  char* const end = text + sizeof text;
  char* first = end;
  for (int digits = 1;; ++digits) {
    *--first = static_cast<char>('0' + n % 10);
    if ((n /= 10) == 0) break;
    if (digits % 3 == 0) *--first = ',';
  }
  return std::string(first, static_cast<std::size_t>(end - first));
}

/// Columns padded to their widest entry, two spaces apart; the last one to the right.
template <class Rows>
std::string aligned(const Rows& rows) {
  std::array<std::size_t, 4> width{};
  for (const auto& row : rows)
    for (std::size_t c = 0; c < 4; ++c) width[c] = std::max(width[c], row[c].size());
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < 3; ++c) out += row[c] + std::string(width[c] - row[c].size() + 2, ' ');
    out += std::string(width[3] - row[3].size(), ' ') + row[3] + '\n';
  }
  return out;
}

template <class Members>
std::string summary_text(const Members& members, const OutputShapes& shapes) {
  std::vector<std::array<std::string, 4>> rows{{"layer", "type", "output", "parameters"}};
  std::vector<Index> own(members.modules.size());
  Index total = 0, frozen = 0;
  for (const auto& t : members.tensors) {
    if (!t.is_parameter) continue;
    own[t.module] += t.tensor->size();
    total += t.tensor->size();
    if (!t.tensor->requires_grad()) frozen += t.tensor->size();
  }
  const auto row = [&](std::size_t i, std::string name, Index parameters) {
    const auto& m = members.modules[i];
    const Shape* const shape = shapes.of(m.module);
    rows.push_back({std::move(name), std::string(m.type), shape ? shape->str() : "-", grouped(parameters)});
  };
  for (std::size_t i = 1; i < members.modules.size(); ++i)
    row(i, std::string(members.modules[i].name), own[i]);
  if (own[0] != 0 && members.modules.size() > 1)
    rows.push_back({"(own)", std::string(members.modules[0].type), "", grouped(own[0])});
  row(0, "total", total);
  if (frozen != 0) rows.push_back({"frozen", "", "", grouped(frozen)});
  return aligned(rows);
}

}  // namespace wengert::inline WENGERT_ISA::nn::detail
