// GoogleTest suites over the rows: one test a row and property.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases/case.hpp"

namespace cases {

class RowTest : public ::testing::TestWithParam<const Case*> {
 protected:
  const Case& row() const { return *GetParam(); }
};

template <class Wanted>
std::vector<const Case*> rows_where(Wanted wanted) {
  std::vector<const Case*> out;
  for (const Case* c : all_cases())
    if (wanted(*c)) out.push_back(c);
  return out;
}

inline std::string test_name(const ::testing::TestParamInfo<const Case*>& info) {
  std::string name = info.param->name;
  for (char& ch : name)
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
  return name;
}

/// Prints a row by its name in a failure.
inline void PrintTo(const Case* c, std::ostream* out) { *out << c->name; }

}  // namespace cases

/// Runs every test of a suite for each row that `wanted` accepts.
#define CASES_SUITE(suite, wanted)                      \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite); \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(::cases::rows_where(wanted)), ::cases::test_name)
