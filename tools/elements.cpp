#include "tools/elements.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>

namespace chorale::tools {

namespace {

constexpr Format formats[] = {  // in the order of types.def
    {23, 127, true, 0x1p24},    // f32
    {10, 15, true, 0x1p11},     // f16
    {7, 127, true, 0x1p8},      // bf16
    {52, 1023, true, 0x1p50},   // f64
    {0, 0, true, 0x1p30},       // i32
    {0, 0, false, 0x1p31},      // u32
    {0, 0, true, 0x1p50},       // i64: a double can hold all of them
    {0, 0, false, 255},         // u8
    {0, 0, true, 127},          // i8
    {3, 7, true, 0x1p4},        // fp8_e4m3
    {2, 15, true, 0x1p3},       // fp8_e5m2
    {0, 0, false, 0x1p50}};     // u64: as for i64
static_assert(std::size(formats) == std::size(all_dtypes), "a type has no format here");

}  // namespace

Format format(DType type) { return formats[size_t(type)]; }

bool has_infinities(DType type) { return format(type).mantissa && type != DType::fp8_e4m3; }

double decode(DType type, const std::byte* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, dtype_size(type));
  const Format layout = format(type);
  const int width = int(dtype_size(type)) * 8;
  if (!layout.mantissa) {
    if (!layout.is_signed) return double(bits);
    return double(int64_t(bits << (64 - width)) >> (64 - width));
  }
  const uint64_t mantissa = bits & ((uint64_t(1) << layout.mantissa) - 1);
  const int exponent_bits = width - 1 - layout.mantissa;
  const int exponent = int((bits >> layout.mantissa) & ((uint64_t(1) << exponent_bits) - 1));
  const bool negative = bits >> (width - 1);
  const bool top = exponent == (1 << exponent_bits) - 1;
  double value;
  if (type == DType::fp8_e4m3 ? top && mantissa == 7 : top && mantissa) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (top && has_infinities(type)) {
    value = std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(double(mantissa), 1 - layout.bias - layout.mantissa);
  } else {
    value = std::ldexp(double(mantissa + (uint64_t(1) << layout.mantissa)),
                       exponent - layout.bias - layout.mantissa);
  }
  return negative ? -value : value;
}

void encode(DType type, double value, std::byte* element) {
  const Format layout = format(type);
  uint64_t bits = 0;
  if (!layout.mantissa) {
    bits = uint64_t(int64_t(value));
  } else {
    const uint64_t sign = uint64_t(1) << (dtype_size(type) * 8 - 1), wide = std::bit_cast<uint64_t>(value);
    if (std::isnan(value) || (std::isinf(value) && !has_infinities(type))) {
      bits = sign - 1;  // the NaN that our arithmetic produces
    } else if (std::isinf(value)) {
      bits = (sign - 1) >> layout.mantissa << layout.mantissa;
    } else if (value != 0) {
      // All values of the oracle are normal and exact, so the mantissa's lower bits are zero.
      const int exponent = int((wide >> 52) & 0x7ff) - 1023 + layout.bias;
      const uint64_t mantissa = (wide & ((uint64_t(1) << 52) - 1)) >> (52 - layout.mantissa);
      bits = (uint64_t(exponent) << layout.mantissa) | mantissa;
    }
    if (std::signbit(value) && bits != sign - 1) bits |= sign;
  }
  std::memcpy(element, &bits, dtype_size(type));
}

}  // namespace chorale::tools
