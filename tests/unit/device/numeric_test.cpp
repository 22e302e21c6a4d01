// These tests compare conversions and arithmetic of element types with a reference that uses only the
// definitions of the formats.

#include "chorale/device/numeric.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <ios>
#include <iterator>
#include <limits>
#include <map>
#include <random>

namespace chorale {
namespace {

/// Defines a narrow float: value(bits) follows from these numbers, and rounding follows from value().
struct Format {
  int exponent_bits, mantissa_bits, bias;
  bool infinities;
  uint32_t largest;  ///< bits of the largest finite value

  int bits() const { return 1 + exponent_bits + mantissa_bits; }

  double value(uint32_t bits_) const {
    const uint32_t mantissa = bits_ & ((1u << mantissa_bits) - 1);
    const uint32_t exponent = (bits_ >> mantissa_bits) & ((1u << exponent_bits) - 1);
    const double sign = bits_ >> (exponent_bits + mantissa_bits) ? -1.0 : 1.0;
    const uint32_t magnitude = bits_ & ((1u << (exponent_bits + mantissa_bits)) - 1);
    if (magnitude > largest) {
      const bool infinite = infinities && mantissa == 0;
      return infinite ? sign * std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::quiet_NaN();
    }
    if (exponent == 0) return sign * std::ldexp(double(mantissa), 1 - bias - mantissa_bits);
    return sign * std::ldexp(double(mantissa + (1u << mantissa_bits)), int(exponent) - bias - mantissa_bits);
  }
};

constexpr Format format_f16{5, 10, 15, true, 0x7bff}, format_bf16{8, 7, 127, true, 0x7f7f};
constexpr Format format_e4m3{4, 3, 7, false, 0x7e}, format_e5m2{5, 2, 15, true, 0x7b};

/// Rounds to nearest even by search among all values.
class Reference {
 public:
  explicit Reference(const Format& format) : format_(format) {
    for (uint32_t bits = 0; bits <= format.largest; ++bits) by_value_[format.value(bits)] = bits;
  }

  uint32_t round(double value) const {
    const uint32_t sign = std::signbit(value) ? 1u << (format_.bits() - 1) : 0;
    const double magnitude = std::fabs(value);
    const double top = by_value_.rbegin()->first, below_top = std::prev(by_value_.end(), 2)->first;
    if (magnitude >= top) {
      // With one exponent more, rounding would give the next power of two from half a unit above the largest
      // value on. The half itself goes to the even one.
      const double edge = top + (top - below_top) / 2;
      if (magnitude < edge || (magnitude == edge && format_.largest % 2 == 0)) return sign | format_.largest;
      return format_.infinities ? sign | (format_.largest + 1) : (1u << (format_.bits() - 1)) - 1;
    }
    const auto above = by_value_.upper_bound(magnitude);
    const auto below = std::prev(above);
    const double down = magnitude - below->first, up = above->first - magnitude;
    const bool take_above = up < down || (up == down && above->second % 2 == 0);
    return sign | (take_above ? above->second : below->second);
  }

 private:
  Format format_;
  std::map<double, uint32_t> by_value_;
};

template <class T>
void check_format(const Format& format) {
  const Reference reference(format);
  const auto expect_rounds = [&](float value) {
    ASSERT_EQ(uint32_t(from_float<T>(value).bits), reference.round(value)) << std::hexfloat << value;
  };

  // Every value converts exactly and back to the same bits, and every NaN to the canonical one.
  const uint32_t canonical_nan = (1u << (format.bits() - 1)) - 1;
  for (uint32_t bits = 0; bits < (1u << format.bits()); ++bits) {
    T narrow_value;
    narrow_value.bits = decltype(narrow_value.bits)(bits);
    const float got = to_float(narrow_value);
    const double wanted = format.value(bits);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got)) << std::hex << bits;
      ASSERT_EQ(uint32_t(from_float<T>(got).bits), canonical_nan) << std::hex << bits;
      continue;
    }
    ASSERT_EQ(double(got), wanted) << std::hex << bits;
    ASSERT_EQ(std::signbit(got), std::signbit(wanted)) << std::hex << bits;
    ASSERT_EQ(uint32_t(from_float<T>(got).bits), bits);
  }

  // These values are halfway between neighbours, and one float to either side of it.
  for (uint32_t bits = 0; bits < format.largest; ++bits) {
    const float tie = float((format.value(bits) + format.value(bits + 1)) / 2);
    for (const float value : {tie, std::nextafterf(tie, 0.0f), std::nextafterf(tie, INFINITY)}) {
      expect_rounds(value);
      expect_rounds(-value);
    }
  }

  // These values cover overflow, infinities, the smallest float, and floats of all sizes.
  const double top = format.value(format.largest), next = format.value(format.largest - 1);
  for (const double value : {top, top + (top - next) / 2, top + (top - next), top * 2}) {
    for (const float f :
         {float(value), std::nextafterf(float(value), 0.0f), std::nextafterf(float(value), INFINITY)}) {
      expect_rounds(f);
      expect_rounds(-f);
    }
  }
  expect_rounds(INFINITY);
  expect_rounds(-INFINITY);
  expect_rounds(std::numeric_limits<float>::denorm_min());
  std::mt19937 random(7);
  for (int trial = 0; trial < 200000; ++trial) {
    const float value = detail::bits_float(random());
    if (!std::isnan(value)) expect_rounds(value);
  }
}

TEST(Numeric, F16) { check_format<f16>(format_f16); }
TEST(Numeric, Bf16) { check_format<bf16>(format_bf16); }
TEST(Numeric, Fp8E4m3) { check_format<fp8_e4m3>(format_e4m3); }
TEST(Numeric, Fp8E5m2) { check_format<fp8_e5m2>(format_e5m2); }

TEST(Numeric, AnOverflowIsSeen) {
  EXPECT_TRUE(std::isnan(to_float(from_float<fp8_e4m3>(1e9f))));
  EXPECT_TRUE(std::isnan(to_float(from_float<fp8_e4m3>(-INFINITY))));
  EXPECT_EQ(to_float(from_float<fp8_e4m3>(464.0f)), 448.0f);
  EXPECT_EQ(to_float(from_float<fp8_e5m2>(1e9f)), INFINITY);
  EXPECT_EQ(to_float(from_float<fp8_e5m2>(-INFINITY)), -INFINITY);
}

TEST(Numeric, ScaledDataAreClamped) {
  EXPECT_EQ(clamp_to<fp8_e4m3>(1e9f), 448.0f);
  EXPECT_EQ(clamp_to<fp8_e5m2>(-INFINITY), -57344.0f);
  EXPECT_EQ(clamp_to<fp8_e5m2>(3.0f), 3.0f);
  EXPECT_TRUE(std::isnan(clamp_to<fp8_e4m3>(NAN)));
}

TEST(Numeric, IntegersWrap) {
  EXPECT_EQ((combine<ReduceOp::sum, int32_t>(INT32_MAX, 1)), INT32_MIN);
  EXPECT_EQ((combine<ReduceOp::prod, int32_t>(INT32_MIN, -1)), INT32_MIN);
  EXPECT_EQ((combine<ReduceOp::sum, int64_t>(INT64_MAX, 1)), INT64_MIN);
  EXPECT_EQ((combine<ReduceOp::sum, int8_t>(127, 1)), -128);
  EXPECT_EQ((combine<ReduceOp::prod, uint8_t>(200, 2)), 144);
}

TEST(Numeric, MinAndMaxKeepNan) {
  const float nan = NAN;
  EXPECT_TRUE(std::isnan(combine<ReduceOp::min>(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(combine<ReduceOp::min>(1.0f, nan)));
  EXPECT_TRUE(std::isnan(combine<ReduceOp::max>(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(combine<ReduceOp::max>(1.0f, nan)));
  EXPECT_EQ(combine<ReduceOp::min>(2.0f, -1.0f), -1.0f);
  EXPECT_EQ(combine<ReduceOp::max>(2.0f, -1.0f), 2.0f);
}

template <class A>
void expect_zeros_in_order() {
  for (const bool swapped : {false, true}) {
    const A one = swapped ? A(-0.0) : A(0.0), other = swapped ? A(0.0) : A(-0.0);
    EXPECT_TRUE(std::signbit(combine<ReduceOp::min>(one, other)));
    EXPECT_FALSE(std::signbit(combine<ReduceOp::max>(one, other)));
  }
}

TEST(Numeric, MinAndMaxTellZerosApart) {
  expect_zeros_in_order<float>();
  expect_zeros_in_order<double>();
}

TEST(Numeric, MinAndMaxKeepInfinities) {
  EXPECT_EQ(narrow<fp8_e5m2>(combine<ReduceOp::max>(INFINITY, 1.0f)).bits, 0x7c);
  EXPECT_EQ(narrow<fp8_e5m2>(combine<ReduceOp::min>(-INFINITY, 1.0f)).bits, 0xfc);
}

TEST(Numeric, AverageTruncatesIntegers) {
  EXPECT_EQ(finish_avg<int32_t>(-7, 2), -3);
  EXPECT_EQ(finish_avg<uint32_t>(4000000000u, 3), 1333333333u);
  EXPECT_EQ(finish_avg<uint64_t>(18000000000000000000u, 3), 6000000000000000000u);
  EXPECT_EQ(finish_avg<f16>(3.0f, 2), 1.5f);
}

TEST(Numeric, ProductsAreRoundedOnce) {
  EXPECT_EQ(scaled<int8_t>(100, 3), 44);
  EXPECT_EQ(scaled<uint64_t>(uint64_t(1) << 63, 3), uint64_t(1) << 63);
  EXPECT_EQ(scaled(from_float<fp8_e4m3>(1.125f), from_float<fp8_e4m3>(1.125f)).bits,
            from_float<fp8_e4m3>(1.265625f).bits);
}

TEST(Numeric, TagsMatchTheirNames) {
  for (const DType type : all_dtypes) {
    const size_t size = with_dtype(type, [](auto tag) { return sizeof(typename decltype(tag)::type); });
    EXPECT_EQ(size, dtype_size(type)) << dtype_name(type);
    EXPECT_STRNE(dtype_name(type), "?");
  }
  for (const ReduceOp op : all_reduce_ops) {
    EXPECT_EQ(with_reduce_op(op, [](auto tag) { return decltype(tag)::value; }), op) << reduce_op_name(op);
  }
}

}  // namespace
}  // namespace chorale
