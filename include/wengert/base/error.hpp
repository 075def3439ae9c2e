// Exceptions and their one message grammar: `op: fault; operands as passed; expectation`. Floor: base.
#pragma once

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

template <class P>
void append(std::string& out, const P& part) {
  if constexpr (std::is_convertible_v<const P&, std::string_view>) {
    out += std::string_view(part);
  } else if constexpr (std::is_floating_point_v<P>) {
    std::string s = std::to_string(part);  // fixed notation, trailing zeros trimmed: 0.500000 -> 0.5
    if (s.find('.') != std::string::npos) {
      s.erase(s.find_last_not_of('0') + 1);
      if (s.back() == '.') s.pop_back();
    }
    out += s;
  } else if constexpr (std::is_arithmetic_v<P>) {
    out += std::to_string(part);
  } else {
    out += part.str();
  }
}

/// Concatenates strings, numbers and anything with `str()`.
template <class... P>
std::string text(const P&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

}  // namespace detail

/// Throws `E` with the message "op: parts...".
template <class E, class... P>
[[noreturn]] [[gnu::noinline]] [[gnu::cold]] void fail(std::string_view op, const P&... parts) {
  throw E(detail::text(op, ": ", parts...));
}

}  // namespace wengert::inline WENGERT_ISA
