#pragma once
// These conversions between all element types give the same bits on the CPU and on CUDA.
//
// C++ leaves the result undefined when a float does not fit an integer type, and machines differ there. These
// conversions define it:
//
//   from a float to an integer   rounds towards zero. A value outside the range becomes the nearest end of
//                                the range. A NaN becomes 0
//   between integers             keeps the low bits, so a value that fits does not change
//   to a float                   rounds once, to nearest, ties to even. A value that is too large becomes
//                                infinity, or NaN in fp8_e4m3, which has no infinity. A NaN becomes the NaN
//                                without sign whose exponent and mantissa bits are all set
//   to the same type             keeps the bits

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "chorale/device/numeric.hpp"

namespace chorale {
namespace detail {

/// Rounds `value`, which is no NaN, to odd: if no float equals it, returns the neighbour whose lowest bit is
/// set. Rounding the result to a type with at least two bits less gives the same as rounding `value` once.
/// The set bit shows that the value is neither representable there nor halfway between two values.
CHORALE_HD float odd_float(double value) {
  const float nearest = float(value);
  uint32_t bits = float_bits(nearest);
  if (double(nearest) != value && (bits & 1u) == 0) {
    const bool too_large = (nearest < 0 ? -double(nearest) : double(nearest)) > (value < 0 ? -value : value);
    bits = too_large ? bits - 1 : bits + 1;
  }
  return bits_float(bits);
}

/// Rounds to odd like odd_float(). A double may have no room for the low bits, so they are folded into one
/// bit.
CHORALE_HD double odd_double(uint64_t value) {
  constexpr uint64_t low = (uint64_t(1) << 11) - 1;
  if (value >> 53 != 0) value = (value & ~low) | ((value & low) != 0 ? low + 1 : 0);
  return double(value);
}
CHORALE_HD double odd_double(int64_t value) {
  return value < 0 ? -odd_double(0 - uint64_t(value)) : odd_double(uint64_t(value));
}

template <class To>
inline constexpr To least = std::numeric_limits<To>::min();
template <class To>
inline constexpr To most = std::numeric_limits<To>::max();

template <class To>
CHORALE_HD To integer_from(double value) {
  if (value != value) return To(0);
  if (value <= double(least<To>)) return least<To>;
  // For 64 bits the bound rounds up to a value that is already too large.
  if (value >= double(most<To>)) return most<To>;
  return To(value);
}

/// Converts a value that is not a NaN to a narrow float, f32 or f64.
template <class To, class From>
CHORALE_HD To float_from(From value) {
  if constexpr (!is_narrow_float<To>) {
    return To(value);
  } else if constexpr (std::is_same_v<From, float>) {
    return from_float<To>(value);
  } else if constexpr (std::is_same_v<From, int64_t> || std::is_same_v<From, uint64_t>) {
    return from_float<To>(odd_float(odd_double(value)));
  } else {
    return from_float<To>(odd_float(double(value)));  // exactly a double
  }
}

template <class To>
CHORALE_HD To no_number() {
  if constexpr (std::is_same_v<To, double>) {
    const uint64_t bits = ~uint64_t(0) >> 1;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  } else {
    const float value = bits_float(0x7fffffffu);
    if constexpr (is_narrow_float<To>) {
      return from_float<To>(value);
    } else {
      return value;
    }
  }
}

}  // namespace detail

/// Converts `value` to type To, by the rules above. You may first convert the value to double, int64_t or
/// uint64_t, if that type holds it exactly: the result is the same. One of the three always does.
template <class To, class From>
CHORALE_HD To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else {
    const Accumulator<From> wide = widen(value);
    if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
      return To(wide);
    } else if constexpr (std::is_integral_v<To>) {
      return detail::integer_from<To>(double(wide));
    } else {
      if (wide != wide) return detail::no_number<To>();
      return detail::float_from<To>(wide);
    }
  }
}

}  // namespace chorale
