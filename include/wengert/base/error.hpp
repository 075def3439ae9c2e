// Exceptions and their one message grammar: `op: fault; operands as passed; expectation`. Floor: base.
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <wengert/base/config.hpp>

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
      append_ = &append_real;
      real_ = static_cast<double>(number);
    } else if constexpr (std::is_signed_v<P>) {
      append_ = &append_signed;
      signed_ = number;
    } else {
      append_ = &append_unsigned;
      unsigned_ = number;
    }
  }
  /// Anything with `str()`; it must outlive the piece.
  template <class P>
  requires requires(const P& p) { p.str(); }
  Piece(const P& part) noexcept
      : append_([](const Piece& p, std::string& out) { out += static_cast<const P*>(p.object_)->str(); }),
        object_(&part) {}

  void append_to(std::string& out) const { append_(*this, out); }

 private:
  static void append_string(const Piece& p, std::string& out) { out += p.string_; }
  static void append_signed(const Piece& p, std::string& out) { out += std::to_string(p.signed_); }
  static void append_unsigned(const Piece& p, std::string& out) { out += std::to_string(p.unsigned_); }
  static void append_real(const Piece& p, std::string& out) {
    std::string s = std::to_string(p.real_);  // fixed notation, trailing zeros trimmed: 0.500000 -> 0.5
    if (s.find('.') != std::string::npos) {
      s.erase(s.find_last_not_of('0') + 1);
      if (s.back() == '.') s.pop_back();
    }
    out += s;
  }

  void (*append_)(const Piece&, std::string&);
  union {
    std::string_view string_;
    double real_;
    long long signed_;
    unsigned long long unsigned_;
    const void* object_;
  };
};

[[gnu::noinline]] inline std::string join(std::initializer_list<Piece> pieces) {
  std::string out;
  for (const Piece& p : pieces) p.append_to(out);
  return out;
}

/// Concatenates strings, numbers and anything with `str()`.
template <class... P>
std::string text(const P&... parts) {
  return join({Piece(parts)...});
}

template <class E>
[[noreturn]] [[gnu::noinline]] [[gnu::cold]] void throw_joined(std::initializer_list<Piece> pieces) {
  throw E(join(pieces));
}

}  // namespace detail

/// Throws `E` with the message "op: parts...".
template <class E, class... P>
[[noreturn]] [[gnu::noinline]] [[gnu::cold]] void fail(std::string_view op, const P&... parts) {
  detail::throw_joined<E>({detail::Piece(op), detail::Piece(": "), detail::Piece(parts)...});
}

}  // namespace wengert::inline WENGERT_ISA
