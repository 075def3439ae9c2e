// The list of what a module consists of, made from its `members` function. Floor: nn.
#pragma once

#include <string>
#include <utility>

#include <wengert/base/random.hpp>
#include <wengert/nn/parameter.hpp>

namespace wengert::inline WENGERT_ISA::nn {

class ModuleBase;

namespace detail {

/// The name of a type without namespaces and template arguments: "Linear".
template <class M>
constexpr std::string_view type_name() {
  std::string_view s = __PRETTY_FUNCTION__;
  s.remove_prefix(s.find("M = ") + 4);
  s = s.substr(0, s.find_first_of("<;]"));
  if (const std::size_t colons = s.rfind("::"); colons != s.npos) s.remove_prefix(colons + 2);
  return s;
}

template <class M>
concept ModuleType = std::is_base_of_v<ModuleBase, M>;

template <class M>
concept Pointing = requires(M& m) {
  static_cast<bool>(m);
  *m;
};

template <class M>
concept Range = requires(M& m) {
  m.begin();
  m.end();
};

template <class>
inline constexpr bool unknown_member = false;

}  // namespace detail

/// Collects, under dotted names, everything that a module and the modules in it list. It is what the
/// parameter of a `members` function is:
///
///   void members(auto& list) { list("hidden", hidden, "out", out); }
///
/// Takes pairs of a name and a member: a Parameter, a Buffer, a module, a Generator, or an optional, a
/// pointer, a std::vector or a std::array of these (which adds the position: "blocks.0"). What an empty
/// optional or pointer would hold is absent. Throws ValueError on names that are empty, hold a dot or are
/// used twice, and when a module holds a Parameter, Buffer or module that it does not list.
template <Field T>
class Members {
 public:
  struct TensorEntry {
    std::string name;
    Tensor<T>* tensor;
    bool is_parameter;
    std::size_t module;  // index in `modules`
  };
  struct ModuleEntry {
    std::string name;
    std::string_view type;
    ModuleBase* module;
  };
  struct GeneratorEntry {
    std::string name;
    Generator* generator;
  };
  std::vector<TensorEntry> tensors;
  std::vector<ModuleEntry> modules;  // the first is the whole model, its name empty
  std::vector<GeneratorEntry> generators;

  template <class M>
  explicit Members(M& model) {
    add_module(model);
  }

  template <class M, class... Rest>
  void operator()(std::string_view name, M& member, Rest&&... rest) {
    if (name.empty() || name.find('.') != name.npos)
      fail<ValueError>("members", modules[module_].type, " lists a member by the name \"", name,
                       "\"; expected a name without a dot");
    add(name, member);
    if constexpr (sizeof...(Rest) > 0) (*this)(std::forward<Rest>(rest)...);
  }

 private:
  template <class M>
  void add(std::string_view name, M& m) {
    const std::size_t before = path_.size();
    if (!path_.empty()) path_ += '.';
    path_ += name;
    if constexpr (detail::ModuleType<M>) {
      add_module(m);
    } else if constexpr (std::same_as<M, Parameter<T>> || std::same_as<M, Buffer<T>>) {
      note(static_cast<const detail::Listed*>(&m));
      tensors.push_back({path_, &m, M::is_parameter, module_});
    } else if constexpr (std::same_as<M, Generator>) {
      note(&m);
      generators.push_back({path_, &m});
    } else if constexpr (detail::Pointing<M>) {
      path_.resize(before);
      if (static_cast<bool>(m)) add(name, *m);
    } else if constexpr (detail::Range<M>) {
      std::size_t i = 0;
      for (auto& one : m) add(std::to_string(i++), one);
    } else {
      static_assert(detail::unknown_member<M>,
                    "a module lists members that are a Parameter or Buffer of its element type, a module, a "
                    "Generator, or an optional, pointer or range of these; `members` itself is not const");
    }
    path_.resize(before);
  }

  template <class M>
  void add_module(M& m) {
    static_assert(
        requires { m.members(*this); },
        "a module needs a public function that lists its members, each with a name: "
        "void members(auto& list) { list(\"hidden\", hidden, \"out\", out); }");
    note(static_cast<const detail::Listed*>(&m));
    const std::size_t outer = std::exchange(module_, modules.size());
    modules.push_back({path_, detail::type_name<M>(), &m});
    m.members(*this);
    check_complete(&m, &m + 1);
    module_ = outer;
  }

  /// Notes that the module at work lists what lies at `where` by the name `path_`.
  void note(const void* where) {
    for (const Seen& s : seen_) {
      if (s.where == where)
        fail<ValueError>("members", modules[0].type, " lists one member twice, as \"", s.name, "\" and \"",
                         path_, "\"; expected every member once");
      if (s.lister == module_ && s.name == path_)
        fail<ValueError>("members", modules[0].type, " lists two members by the name \"", path_,
                         "\"; expected different names");
    }
    seen_.push_back({where, path_, module_});
  }

  /// Whether all that lives in the bytes of one module has been listed.
  void check_complete(const void* begin, const void* end) const {
    const ModuleEntry& holder = modules[module_];
    std::string_view last;  // the member before
    for (const detail::Living::One& one : detail::Living::instance().between(begin, end)) {
      const auto it =
          std::find_if(seen_.begin(), seen_.end(), [&](const Seen& s) { return s.where == one.where; });
      if (it == seen_.end())
        fail<ValueError>("members", holder.type, " does not list a ", one.type, " that it holds",
                         last.empty() ? "" : ", declared after \"", last, last.empty() ? "" : "\"",
                         "; expected list(\"name\", member) for every Parameter, Buffer and module");
      if (it->lister == module_) last = it->name;
    }
  }

  struct Seen {
    const void* where;
    std::string name;
    std::size_t lister;  // index in `modules`
  };

  std::string path_;
  std::size_t module_ = 0;
  std::vector<Seen> seen_;
};

}  // namespace wengert::inline WENGERT_ISA::nn
