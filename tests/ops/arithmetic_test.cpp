// Element-wise operators where rows do not lead: numbers beside integers, and operands that do not broadcast.
#include <limits>

#include <gtest/gtest.h>

#include <wengert/ops/create.hpp>
#include <wengert/ops/index.hpp>
#include <wengert/ops/reduce.hpp>
#include <wengert/ops/select.hpp>
#include <wengert/ops/view_expand.hpp>

#include "support/errors.hpp"

using namespace wengert;
using Bytes = std::vector<Byte>;

namespace {

template <class F>
std::string value_fault(F f) {
  return message_of<ValueError>([&] { f(); });
}
template <class F>
std::string shape_fault(F f) {
  return message_of<ShapeError>([&] { f(); });
}

TEST(NumbersBesideIntegers, CountWhereTheTypeHoldsThem) {
  const auto x = tensor<Index>({1, 2, 3});
  EXPECT_EQ((x + 2.0).to_vector(), (std::vector<Index>{3, 4, 5}));
  EXPECT_EQ((x - 1U).to_vector(), (std::vector<Index>{0, 1, 2}));
  EXPECT_EQ((x * true).to_vector(), (std::vector<Index>{1, 2, 3}));
  EXPECT_EQ((x <= 2.0F).to_vector(), (Bytes{1, 1, 0}));
  EXPECT_EQ((x > std::numeric_limits<Index>::min()).to_vector(), (Bytes{1, 1, 1}));
  const auto bytes = tensor<Byte>({0, 255});
  EXPECT_EQ((bytes == 255).to_vector(), (Bytes{0, 1}));
  EXPECT_EQ((tensor<std::int8_t>({-128, 127}) == -128.0).to_vector(), (Bytes{1, 0}));
}

TEST(NumbersBesideIntegers, ThrowWhereRoundingThemWouldAnswerAnotherQuestion) {
  const auto x = tensor<std::int32_t>({1, 2, 3});
  const std::string tail = "; expected a whole number from -2147483648 to 2147483647; cast the tensor first";
  const std::string head = ": the number does not fit the elements; elements are int32, number is ";
  EXPECT_EQ(value_fault([&] { x + 0.5; }), "add" + head + "0.5" + tail);
  EXPECT_EQ(value_fault([&] { x - 0.5; }), "sub" + head + "0.5" + tail);
  EXPECT_EQ(value_fault([&] { 0.5 - x; }), "sub" + head + "0.5" + tail);
  EXPECT_EQ(value_fault([&] { 0.5F * x; }), "mul" + head + "0.5" + tail);
  EXPECT_EQ(value_fault([&] { return x < 2.5; }), "less" + head + "2.5" + tail);
  EXPECT_EQ(value_fault([&] { return x <= 2.5; }), "less_equal" + head + "2.5" + tail);
  EXPECT_EQ(value_fault([&] { return x > Index{1} << 32; }), "greater" + head + "4294967296" + tail);
  EXPECT_EQ(value_fault([&] { return x >= 3e9; }), "greater_equal" + head + "3e+09" + tail);
  EXPECT_EQ(value_fault([&] { return x == std::numeric_limits<double>::quiet_NaN(); }),
            "equal" + head + "nan" + tail);
  EXPECT_EQ(value_fault([&] { return x != std::numeric_limits<float>::infinity(); }),
            "not_equal" + head + "inf" + tail);
  const auto bytes = tensor<Byte>({44});  // 300 would wrap around to 44
  for (const int wrong : {-1, 256, 300}) EXPECT_THROW(static_cast<void>(bytes == wrong), ValueError) << wrong;
  EXPECT_THROW(static_cast<void>(x == std::uint64_t{1} << 63), ValueError);
  EXPECT_THROW(static_cast<void>(tensor<std::uint64_t>({1}) == -1), ValueError);
  EXPECT_THROW(static_cast<void>(tensor<Index>({1}) == 0x1p63), ValueError);
}

TEST(Broadcasting, FaultsNameTheOperandsAsTheCallerDid) {
  const auto x = zeros({3, 4}), y = zeros({2});
  const auto mask = zeros<Byte>({2});
  const std::string tail = "; expected equal dimensions or 1, aligned at the back";
  EXPECT_EQ(shape_fault([&] { return x > y; }),
            "greater: shapes do not broadcast; a is (3, 4), b is (2)" + tail);
  EXPECT_EQ(shape_fault([&] { return y >= x; }),
            "greater_equal: shapes do not broadcast; a is (2), b is (3, 4)" + tail);
  EXPECT_EQ(shape_fault([&] { where(mask, x, 0); }),
            "where: shapes do not broadcast; mask is (2), a is (3, 4), b is ()" + tail);
  EXPECT_EQ(shape_fault([&] { masked_fill(x, mask, 0); }),
            "masked_fill: shapes do not broadcast; mask is (2), x is (3, 4)" + tail);
  EXPECT_EQ(shape_fault([&] {
              map([](auto a, auto b, auto c) { return a + b + c; }, x, zeros({3, 1}), y);
            }),
            "map: shapes do not broadcast; a is (3, 4), b is (3, 1), c is (2)" + tail);
}

TEST(Overflow, IsToldInTheNameOfTheOperator) {
  const Index half = Index{1} << 31;
  const auto rows = expand(zeros({1, 1}), {half, 1}), columns = expand(zeros({1, 1}), {1, half});
  const std::string fault = ": number of elements overflows; shape is ";
  const std::string tail = "; expected a tensor that fits memory";
  EXPECT_EQ(shape_fault([&] { rows + columns; }), "add" + fault + "(2147483648, 2147483648)" + tail);
  EXPECT_EQ(shape_fault([&] { return rows < columns; }), "less" + fault + "(2147483648, 2147483648)" + tail);
  const auto bytes = expand(zeros<Byte>({1}), {Index{1} << 61});
  EXPECT_EQ(shape_fault([&] { cast<double>(bytes); }), "cast" + fault + "(2305843009213693952)" + tail);
  EXPECT_EQ(shape_fault([&] { sum(bytes); }), "sum" + fault + "(2305843009213693952)" + tail);
  EXPECT_EQ(shape_fault([&] { gather(zeros({1}), 0, bytes); }),
            "gather" + fault + "(2305843009213693952)" + tail);
  EXPECT_EQ(shape_fault([&] { one_hot(zeros<Byte>({3}), Index{1} << 62); }),
            "one_hot" + fault + "(3, 4611686018427387904)" + tail);
  const Tensor<Byte> flat({Index{1} << 61, 0});
  EXPECT_EQ(shape_fault([&] { sum(flat, 1); }), "sum" + fault + "(2305843009213693952, 0)" + tail);
}

}  // namespace
