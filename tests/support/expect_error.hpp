// EXPECT_ERROR(statement, Type, "exact message").
#pragma once

#include <string>

#include <gtest/gtest.h>

#define EXPECT_ERROR(statement, Type, message)                    \
  EXPECT_THROW(                                                   \
      {                                                           \
        try {                                                     \
          statement;                                              \
        } catch (const Type& e) {                                 \
          EXPECT_EQ(std::string(e.what()), std::string(message)); \
          throw;                                                  \
        }                                                         \
      },                                                          \
      Type)
