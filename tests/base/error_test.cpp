// The grammar of messages and the family of exception types.
#include <cmath>

#include <gtest/gtest.h>

#include <wengert/base/config.hpp>
#include <wengert/base/scalar.hpp>
#include <wengert/base/shape.hpp>

#include "support/errors.hpp"

using namespace wengert;

namespace {

TEST(Errors, NameTheOperatorAndJoinTheParts) {
  EXPECT_EQ(message_of<ValueError>([] {
              fail<ValueError>("op", "p is ", 0.5, ", n is ", 3, ", x is ", Shape{2, 3}, std::string("; "),
                               'c' == 'c');
            }),
            "op: p is 0.5, n is 3, x is (2, 3); 1");
  EXPECT_EQ(message_of<ValueError>([] { fail<ValueError>("op", 2.0, " ", -1.25F, " ", std::size_t{7}); }),
            "op: 2 -1.25 7");
}

TEST(Errors, TellNumbersApartThatAreClose) {
  const auto text = [](auto... numbers) {
    return message_of<ValueError>([&] { fail<ValueError>("op", numbers..., ""); });
  };
  EXPECT_EQ(text(-1e-9), "op: -1e-09");
  EXPECT_EQ(text(1.0000001), "op: 1.0000001");
  EXPECT_EQ(text(0.1, " ", 0.1F, " ", 0.1 + 0.2), "op: 0.1 0.1 0.30000000000000004");
  EXPECT_EQ(text(65536.0, " ", 16777216.0), "op: 65536 16777216");
  EXPECT_EQ(text(3e38F, " ", HUGE_VAL, " ", -HUGE_VAL), "op: 3e+38 inf -inf");
  EXPECT_EQ(text(std::nan(""), " ", -std::nan("")), "op: nan nan");
}

TEST(Errors, AreAllOneFamily) {
  EXPECT_THROW(fail<ShapeError>("a", "b"), Error);
  EXPECT_THROW(fail<IndexError>("a", "b"), Error);
  EXPECT_THROW(fail<TapeError>("a", "b"), Error);
  EXPECT_THROW(fail<ValueError>("a", "b"), Error);
  EXPECT_THROW(fail<IoError>("a", "b"), Error);
  EXPECT_THROW(fail<Error>("a", "b"), std::runtime_error);
  static_assert(!std::is_base_of_v<ShapeError, IndexError> && !std::is_base_of_v<TapeError, ValueError>);
}

TEST(Scalars, AreToldApart) {
  static_assert(Scalar<float> && Scalar<Byte> && Scalar<bool> && !Scalar<std::string> && !Scalar<int*>);
  static_assert(SimdScalar<double> && !SimdScalar<int>);
  static_assert(Field<float> && !Field<Index> && !Field<bool>);
  EXPECT_EQ(dtype_name<float>(), "float32");
  EXPECT_EQ(dtype_name<double>(), "float64");
  EXPECT_EQ(dtype_name<Index>(), "int64");
  EXPECT_EQ(dtype_name<std::int8_t>(), "int8");
  EXPECT_EQ(dtype_name<std::uint32_t>(), "uint32");
  EXPECT_EQ(dtype_name<bool>(), "bool");
  struct Own {
    int v;
  };
  EXPECT_EQ(dtype_name<Own>(), "scalar");
}

TEST(Config, NamesTheInstructionSet) { EXPECT_STRNE(simd_name(), ""); }

}  // namespace
