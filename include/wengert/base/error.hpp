// Exceptions and their one message grammar: `op: fault; operands as passed; expectation`. Floor: base.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <wengert/base/config.hpp>
#include <wengert/base/list.hpp>

namespace wengert::inline WENGERT_ISA {

/// Base of everything the library throws for a user's fault.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Shapes, ranks or axes that do not fit the operator.
struct ShapeError : Error {
  using Error::Error;
};
/// An index outside its axis.
struct IndexError : Error {
  using Error::Error;
};
/// Misuse of the tape: stale handle, second backward, write after save, foreign thread.
struct TapeError : Error {
  using Error::Error;
};
/// An argument outside its domain.
struct ValueError : Error {
  using Error::Error;
};
/// A file that is missing, truncated, malformed, or cannot be written.
struct IoError : Error {
  using Error::Error;
};

namespace detail {

/// A message under construction. A std::string would cost every program its member functions, which C++20
/// compiles anew in each.
using Message = List<char>;

/// One piece of a message, its type erased: a message costs a program no code but the list of its pieces.
class Piece {
 public:
  Piece(std::string_view s) noexcept : append_(&append_string), string_(s) {}
  Piece(const char* s) noexcept : Piece(std::string_view(s)) {}
  Piece(const std::string& s) noexcept : Piece(std::string_view(s)) {}
  template <class P>
  requires std::is_arithmetic_v<P> Piece(P number)
  noexcept {
    if constexpr (std::is_floating_point_v<P>) {
      append_ = &append_real<std::conditional_t<std::is_same_v<P, float>, float, double>>;
      real_ = static_cast<double>(number);
    } else if constexpr (std::is_signed_v<P>) {
      append_ = &append_signed;
      signed_ = number;
    } else {
      append_ = &append_unsigned;
      unsigned_ = number;
    }
  }
  /// Anything with `append_to(Message&)` or `str()`; it must outlive the piece.
  template <class P>
  requires requires(const P& p, Message& m) { p.append_to(m); }
  Piece(const P& part) noexcept
      : append_([](const Piece& p, Message& out) { static_cast<const P*>(p.object_)->append_to(out); }),
        object_(&part) {}
  template <class P>
  requires(
      requires(const P& p) { p.str(); } && !requires(const P& p, Message& m) { p.append_to(m); })
      Piece(const P& part)
  noexcept
      : append_([](const Piece& p, Message& out) {
          const std::string s = static_cast<const P*>(p.object_)->str();
          out.append({s.data(), s.size()});
        }),
        object_(&part) {}

  void append_to(Message& out) const { append_(*this, out); }

 private:
  [[gnu::cold]] static void append_string(const Piece& p, Message& out) {
    out.append({p.string_.data(), p.string_.size()});
  }
  [[gnu::cold]] static void append_signed(const Piece& p, Message& out) {
    char digits[24];
    const int written = std::snprintf(digits, sizeof digits, "%lld", p.signed_);
    out.append({digits, static_cast<std::size_t>(written)});
  }
  [[gnu::cold]] static void append_unsigned(const Piece& p, Message& out) {
    char digits[24];
    const int written = std::snprintf(digits, sizeof digits, "%llu", p.unsigned_);
    out.append({digits, static_cast<std::size_t>(written)});
  }
  /// The fewest digits, but at least six, that read back as the same R: 0.5, -1e-09, 1.0000001.
  template <class R>
  [[gnu::cold]] static void append_real(const Piece& p, Message& out) {
    char digits[32];
    int written = 0;
    for (int precision = 6; precision <= 17; ++precision) {
      written = std::snprintf(digits, sizeof digits, "%.*g", precision, p.real_);
      if (static_cast<R>(std::strtod(digits, nullptr)) == static_cast<R>(p.real_)) break;
    }
    if (p.real_ != p.real_) return append_string("nan", out);  // its sign tells nothing
    out.append({digits, written < 0 ? std::size_t{0} : static_cast<std::size_t>(written)});
  }

  void (*append_)(const Piece&, Message&);
  union {
    std::string_view string_;
    double real_;
    long long signed_;
    unsigned long long unsigned_;
    const void* object_;
  };
};

[[gnu::noinline]] [[gnu::cold]] inline Message join(std::initializer_list<Piece> pieces) {
  Message out;
  for (const Piece& p : pieces) p.append_to(out);
  return out;
}

/// Concatenates strings, numbers and anything with `str()`.
template <class... P>
std::string text(const P&... parts) {
  const Message joined = join({Piece(parts)...});
  return std::string(joined.data(), joined.size());
}

template <class E>
[[noreturn]] [[gnu::noinline]] [[gnu::cold]] void throw_joined(std::initializer_list<Piece> pieces) {
  Message message = join(pieces);
  message.push_back('\0');
  throw E(message.data());
}

}  // namespace detail

/// Throws `E` with the message "op: parts...".
template <class E, class... P>
[[noreturn]] [[gnu::noinline]] [[gnu::cold]] void fail(std::string_view op, const P&... parts) {
  detail::throw_joined<E>({detail::Piece(op), detail::Piece(": "), detail::Piece(parts)...});
}

}  // namespace wengert::inline WENGERT_ISA
