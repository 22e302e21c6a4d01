// These tests compare conversions between all element types with the definitions of the types.

#include "chorale/device/convert.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "conversions.hpp"

namespace chorale::test {
namespace {

/// Converts `values` of type `from` to `type`, each through through().
template <class Through>
Bytes converted_here(DType type, DType from, const Bytes& values, const Through& through) {
  Bytes all;
  with_dtype(type, [&](auto to_tag) {
    using To = typename decltype(to_tag)::type;
    with_dtype(from, [&](auto from_tag) {
      using From = typename decltype(from_tag)::type;
      for (size_t at = 0; at < values.size(); at += sizeof(From))
        append(all, convert<To>(through(load<From>(values.data() + at))));
    });
  });
  return all;
}

/// Names the first element that differs; "" if none does.
std::string differs(DType type, DType from, const Bytes& values, const Bytes& found) {
  const Bytes expected = converted(type, from, values);
  const size_t size = dtype_size(type);
  for (size_t at = 0; at < expected.size() / size; ++at) {
    if (std::equal(found.begin() + ptrdiff_t(at * size), found.begin() + ptrdiff_t((at + 1) * size),
                   expected.begin() + ptrdiff_t(at * size)))
      continue;
    return fmt::format("{} of {} {} is {}, not {}", dtype_name(type), dtype_name(from),
                       exact(from, values.data() + at * dtype_size(from)),
                       exact(type, found.data() + at * size), exact(type, expected.data() + at * size));
  }
  return "";
}

TEST(Convert, EveryTypeToEveryOther) {
  for (const DType from : all_dtypes) {
    const Bytes values = values_to_convert(from);
    for (const DType type : all_dtypes) {
      if (type == from) continue;
      EXPECT_EQ(
          differs(type, from, values, converted_here(type, from, values, [](auto value) { return value; })),
          "");
    }
  }
}

TEST(Convert, ThroughTheWidestTypesItIsTheSame) {
  const auto widest = [](auto value) {
    if constexpr (std::is_same_v<decltype(value), uint64_t>) {
      return value;
    } else if constexpr (std::is_integral_v<decltype(value)>) {
      return int64_t(value);
    } else {
      return convert<double>(value);
    }
  };
  for (const DType from : all_dtypes) {
    const Bytes values = values_to_convert(from);
    for (const DType type : all_dtypes) {
      if (type == from) continue;
      EXPECT_EQ(differs(type, from, values, converted_here(type, from, values, widest)), "");
    }
  }
}

TEST(Convert, ToTheSameTypeBitsStay) {
  for (const DType type : all_dtypes) {
    const Bytes values = values_to_convert(type);
    EXPECT_EQ(converted_here(type, type, values, [](auto value) { return value; }), values)
        << dtype_name(type);
  }
}

/// These conversions are easily got wrong.
TEST(Convert, Examples) {
  EXPECT_EQ(convert<int8_t>(300.0f), 127);
  EXPECT_EQ(convert<int8_t>(-1e30), -128);
  EXPECT_EQ(convert<uint8_t>(-0.9f), 0);
  EXPECT_EQ(convert<uint32_t>(-5.0f), 0u);
  EXPECT_EQ(convert<int32_t>(std::nanf("")), 0);
  EXPECT_EQ(convert<int64_t>(1e19), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(convert<uint64_t>(1e19), 10000000000000000000u);
  EXPECT_EQ(convert<uint64_t>(1e20), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(convert<uint64_t>(-1.5f), 0u);
  EXPECT_EQ(convert<float>(std::numeric_limits<uint64_t>::max()), 0x1p64f);
  EXPECT_EQ(convert<uint8_t>(int32_t(300)), 44);
  EXPECT_EQ(convert<uint32_t>(int8_t(-1)), 0xffffffffu);
  // The value is just above the middle of two bf16. As an f32 it is exactly the middle, which is rounded
  // down.
  EXPECT_EQ(convert<bf16>(1 + 0x1p-8 + 0x1p-40).bits, 0x3f81);
  EXPECT_EQ(convert<bf16>((int64_t(1) << 48) + (int64_t(1) << 40) + 1).bits, 0x5781);
  EXPECT_EQ(convert<bf16>((uint64_t(1) << 63) + (uint64_t(1) << 55) + 1).bits, 0x5f01);
}

}  // namespace
}  // namespace chorale::test
