// Expecting an exception of one type with one message.
#pragma once

#include <string>

#include <gtest/gtest.h>

/// The message of the E that `f` throws; says what happened instead when it does not.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another type was thrown: ") + e.what();
  }
  return "nothing was thrown";
}

/// The statement throws a `Type` with exactly this message.
#define EXPECT_ERROR(statement, Type, message) EXPECT_EQ(message_of<Type>([&] { statement; }), message)
