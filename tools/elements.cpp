#include "tools/elements.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace chorale::tools {

Format format(DType type) {
  switch (type) {
    case DType::f32:
      return {23, 127, true, 0x1p24};
    case DType::f16:
      return {10, 15, true, 0x1p11};
    case DType::bf16:
      return {7, 127, true, 0x1p8};
    case DType::f64:
      return {52, 1023, true, 0x1p50};
    case DType::i32:
      return {0, 0, true, 0x1p30};
    case DType::u32:
      return {0, 0, false, 0x1p31};
    case DType::i64:
      return {0, 0, true, 0x1p50};  // a double can hold all of them
    case DType::u8:
      return {0, 0, false, 255};
    case DType::i8:
      return {0, 0, true, 127};
    case DType::fp8_e4m3:
      return {3, 7, true, 0x1p4};
    case DType::fp8_e5m2:
      return {2, 15, true, 0x1p3};
    case DType::u64:
      return {0, 0, false, 0x1p50};  // as for i64
  }
  return {};
}

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
