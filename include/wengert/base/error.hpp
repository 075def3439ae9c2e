// Exceptions and their one message grammar: `op: fault; operands as passed; expectation`. Floor: base.
#pragma once

#include <cstdio>
#include <cstdlib>
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

/// One piece of a message: a number, a string, or the address of an object that writes itself.
union Piece {
  const char* string;
  double real;
  long long whole;
  unsigned long long natural;
  const void* object;
};
using PieceWriter = void (*)(Piece, Message&);

[[gnu::cold]] inline void append_string(Message& out, std::string_view s) {
  out.append({s.data(), s.size()});
}

template <class N>
[[gnu::cold]] void append_whole(Message& out, const char* format, N number) {
  char digits[24];
  const int written = std::snprintf(digits, sizeof digits, format, number);
  out.append({digits, written < 0 ? std::size_t{0} : static_cast<std::size_t>(written)});
}

/// The fewest digits, but at least six, that read back as the same number, a float where `single`: 0.5,
/// -1e-09, 1.0000001.
[[gnu::cold]] inline void append_real(Message& out, double number, bool single) {
  if (number != number) return append_string(out, "nan");  // its sign tells nothing
  char digits[32];
  int written = 0;
  for (int precision = 6; precision <= 17; ++precision) {
    written = std::snprintf(digits, sizeof digits, "%.*g", precision, number);
    const double read = std::strtod(digits, nullptr);
    if (single ? static_cast<float>(read) == static_cast<float>(number) : read == number) break;
  }
  out.append({digits, written < 0 ? std::size_t{0} : static_cast<std::size_t>(written)});
}

/// How a P becomes a piece, and is written: objects are strings, or have `append_to(Message&)` or `str()`.
/// Specialised for what else there is, so that the many messages of a program cost their lookup alone.
template <class P>
struct PieceOf {
  using Type = P;
  static Piece make(const P& object) noexcept { return {.object = &object}; }
  [[gnu::cold]] static void write(Piece p, Message& out) {
    const P& object = *static_cast<const P*>(p.object);
    if constexpr (requires { object.append_to(out); })
      object.append_to(out);
    else if constexpr (requires { object.str(); })
      append_string(out, object.str());
    else
      append_string(out, object);
  }
};
template <>
struct PieceOf<const char*> {
  using Type = const char*;
  static Piece make(const char* s) noexcept { return {.string = s}; }
  [[gnu::cold]] static void write(Piece p, Message& out) { append_string(out, p.string); }
};
template <>
struct PieceOf<double> {
  using Type = double;
  static Piece make(double number) noexcept { return {.real = number}; }
  [[gnu::cold]] static void write(Piece p, Message& out) { append_real(out, p.real, false); }
};
template <>
struct PieceOf<float> : PieceOf<double> {
  using Type = float;
  [[gnu::cold]] static void write(Piece p, Message& out) { append_real(out, p.real, true); }
};
template <>
struct PieceOf<long long> {
  using Type = long long;
  static Piece make(long long number) noexcept { return {.whole = number}; }
  [[gnu::cold]] static void write(Piece p, Message& out) { append_whole(out, "%lld", p.whole); }
};
template <>
struct PieceOf<unsigned long long> {
  using Type = unsigned long long;
  static Piece make(unsigned long long number) noexcept { return {.natural = number}; }
  [[gnu::cold]] static void write(Piece p, Message& out) { append_whole(out, "%llu", p.natural); }
};
template <std::size_t N>
struct PieceOf<char[N]> : PieceOf<const char*> {};
template <>
struct PieceOf<char*> : PieceOf<const char*> {};
template <class P>
requires std::is_integral_v<P>
struct PieceOf<P> : PieceOf<std::conditional_t<std::is_signed_v<P>, long long, unsigned long long>> {
};

template <class... P>
inline constexpr PieceWriter piece_writers[] = {&PieceOf<P>::write..., nullptr};

[[gnu::noinline]] [[gnu::cold]] inline void append_pieces(Message& out, const Piece* pieces,
                                                          const PieceWriter* writers) {
  for (; *writers != nullptr; ++writers, ++pieces) (*writers)(*pieces, out);
}

[[gnu::noinline]] inline std::string text_of(const Piece* pieces, const PieceWriter* writers) {
  Message out;
  append_pieces(out, pieces, writers);
  return std::string(out.data(), out.size());
}

/// Concatenates strings, numbers and anything with `str()`.
template <class... P>
std::string text(const P&... parts) {
  const Piece pieces[] = {PieceOf<P>::make(parts)...};
  return text_of(pieces, piece_writers<typename PieceOf<P>::Type...>);
}

[[gnu::noinline]] [[gnu::cold]] inline Message message_of(std::string_view op, const Piece* pieces,
                                                          const PieceWriter* writers) {
  Message out;
  append_string(out, op);
  append_string(out, ": ");
  append_pieces(out, pieces, writers);
  out.push_back('\0');
  return out;
}

template <class E>
[[noreturn]] [[gnu::noinline]] [[gnu::cold]] void throw_pieces(std::string_view op, const Piece* pieces,
                                                               const PieceWriter* writers) {
  throw E(message_of(op, pieces, writers).data());
}

}  // namespace detail

/// Throws `E` with the message "op: parts...". Inlined, so that a message costs a program a list of its
/// pieces where it is thrown, out of the way, and no function of its own.
template <class E, class... P>
[[noreturn]] [[gnu::always_inline]] inline void fail(std::string_view op, const P&... parts) {
  const detail::Piece pieces[] = {detail::PieceOf<P>::make(parts)...};
  detail::throw_pieces<E>(op, pieces, detail::piece_writers<typename detail::PieceOf<P>::Type...>);
}

}  // namespace wengert::inline WENGERT_ISA
