// The list of what a module consists of, made from its `members` function. Floor: nn.
#pragma once

#include <cstring>
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
inline constexpr std::string_view type_name_of = type_name<M>();

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

/// Names that live as long as their list.
class Names {
 public:
  Names() noexcept = default;
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  ~Names() {
    while (first_ != nullptr) ::operator delete(std::exchange(first_, first_->next));
  }
  std::string_view keep(std::string_view name) {
    first_ = ::new (::operator new(sizeof(Node) + name.size())) Node{first_};
    char* const text = reinterpret_cast<char*>(first_ + 1);
    if (!name.empty()) std::memcpy(text, name.data(), name.size());
    return {text, name.size()};
  }

 private:
  struct Node {
    Node* next;
  };
  Node* first_ = nullptr;
};

/// The part of Members that no element type and no module's type enters.
class MembersBase {
 public:
  struct ModuleEntry {
    std::string_view name, type;
    ModuleBase* module;
  };
  struct GeneratorEntry {
    std::string_view name;
    Generator* generator;
  };
  wengert::detail::List<ModuleEntry> modules;  // the first is the whole model, its name empty
  wengert::detail::List<GeneratorEntry> generators;

 protected:
  /// Extends the path by a name that was checked when it is one of a list; the size to which `leave` cuts it.
  [[gnu::cold, gnu::noinline]] std::size_t enter(std::string_view name) {
    const std::size_t before = path_.size();
    if (before != 0) path_.push_back('.');
    path_.append({name.data(), name.size()});
    return before;
  }
  void leave(std::size_t before) { path_.resize(before, char()); }

  [[gnu::cold, gnu::noinline]] void check_name(std::string_view name) const {
    if (name.empty() || name.find('.') != name.npos)
      fail<ValueError>("members", modules[module_].type, " lists a member by the name \"", name,
                       "\"; expected a name without a dot");
  }

  /// Makes a module the one at work; returns the one that was.
  [[gnu::cold, gnu::noinline]] std::size_t begin_module(const Listed* listed, std::string_view type,
                                                        ModuleBase* module) {
    const std::string_view name = note(listed);
    modules.push_back({name, type, module});
    return std::exchange(module_, modules.size() - 1);
  }
  void end_module(std::size_t outer, const void* begin, const void* end) {
    check_complete(begin, end);
    module_ = outer;
  }

  /// Notes that the module at work lists what lies at `where` by the name `path_`, which it returns.
  [[gnu::cold, gnu::noinline]] std::string_view note(const void* where) {
    const std::string_view path(path_.data(), path_.size());
    for (const Seen& s : seen_) {
      if (s.where == where)
        fail<ValueError>("members", modules[0].type, " lists one member twice, as \"", s.name, "\" and \"",
                         path, "\"; expected every member once");
      if (s.lister == module_ && s.name == path)
        fail<ValueError>("members", modules[0].type, " lists two members by the name \"", path,
                         "\"; expected different names");
    }
    return seen_.push_back({where, names_.keep(path), module_}).name;
  }

  /// The module at work, by its place in `modules`.
  std::size_t module() const noexcept { return module_; }

 private:
  struct Seen {
    const void* where;
    std::string_view name;
    std::size_t lister;  // index in `modules`
  };

  /// Whether all that lives in the bytes of one module has been listed.
  [[gnu::cold, gnu::noinline]] void check_complete(const void* begin, const void* end) const {
    const ModuleEntry& holder = modules[module_];
    std::string_view last;  // the member before
    const wengert::detail::List<Living::One> held = Living::instance().between(begin, end);
    for (const Living::One& one : held) {
      const Seen* it = seen_.begin();
      while (it != seen_.end() && it->where != one.where) ++it;
      if (it == seen_.end())
        fail<ValueError>("members", holder.type, " does not list a ", one.type, " that it holds",
                         last.empty() ? "" : ", declared after \"", last, last.empty() ? "" : "\"",
                         "; expected list(\"name\", member) for every Parameter, Buffer and module");
      if (it->lister == module_) last = it->name;
    }
  }

  wengert::detail::List<char> path_;
  std::size_t module_ = 0;
  Names names_;
  wengert::detail::List<Seen> seen_;
};

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
class Members : public detail::MembersBase {
 public:
  struct TensorEntry {
    std::string_view name;
    Tensor<T>* tensor;
    bool is_parameter;
    std::size_t module;  // index in `modules`
  };
  wengert::detail::List<TensorEntry> tensors;

  template <class M>
  explicit Members(M& model) {
    add_module(model);
  }

  template <class M, class... Rest>
  void operator()(std::string_view name, M& member, Rest&&... rest) {
    check_name(name);
    add(name, member);
    if constexpr (sizeof...(Rest) > 0) (*this)(std::forward<Rest>(rest)...);
  }

 private:
  template <class M>
  void add(std::string_view name, M& m) {
    const std::size_t before = enter(name);
    if constexpr (detail::ModuleType<M>) {
      add_module(m);
    } else if constexpr (std::same_as<M, Parameter<T>> || std::same_as<M, Buffer<T>>) {
      tensors.push_back({note(static_cast<const detail::Listed*>(&m)), &m, M::is_parameter, module()});
    } else if constexpr (std::same_as<M, Generator>) {
      generators.push_back({note(&m), &m});
    } else if constexpr (detail::Pointing<M>) {
      leave(before);
      if (static_cast<bool>(m)) add(name, *m);
    } else if constexpr (detail::Range<M>) {
      std::size_t i = 0;
      for (auto& one : m) add(wengert::detail::text(i++), one);
    } else {
      static_assert(detail::unknown_member<M>,
                    "a module lists members that are a Parameter or Buffer of its element type, a module, a "
                    "Generator, or an optional, pointer or range of these; `members` itself is not const");
    }
    leave(before);
  }

  template <class M>
  void add_module(M& m) {
    static_assert(
        requires { m.members(*this); },
        "a module needs a public function that lists its members, each with a name: "
        "void members(auto& list) { list(\"hidden\", hidden, \"out\", out); }");
    const std::size_t outer = begin_module(&m, detail::type_name_of<M>, &m);
    m.members(*this);
    end_module(outer, &m, &m + 1);
  }
};

}  // namespace wengert::inline WENGERT_ISA::nn
