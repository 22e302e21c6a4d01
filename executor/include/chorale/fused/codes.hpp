#pragma once
// Codes are elements of 8 bits that share a scale: fp8_e4m3, fp8_e5m2 or int8_t. An element is its code times
// the scale. The scale of a block of elements maps the largest finite magnitude of the block, A, to the
// largest code.
//
//   an element's error  at most code_error<Q> * block_magnitude<Q>(A), and a little more by the rounding of
//                       floats: quantised_error() of quantised.hpp has all of it
//   zeros               stay zeros
//   small blocks        have the smallest scale, so their error is that of a block whose A is
//                       most_encoded<Q> * least_scale
//   NaN and infinity    are no magnitudes, so the other elements of the block keep their precision. A NaN
//                       stays a NaN. An infinity stays one in fp8_e5m2, and becomes a NaN in the other types

#include <cstdint>
#include <type_traits>

#include "chorale/device/codec.hpp"
#include "chorale/device/macros.hpp"
#include "chorale/device/numeric.hpp"

namespace chorale::fused {

template <class Q>
inline constexpr bool is_code =
    std::is_same_v<Q, fp8_e4m3> || std::is_same_v<Q, fp8_e5m2> || std::is_same_v<Q, int8_t>;

/// Bounds the error of an element by the largest magnitude of its block. The error is largest where codes are
/// farthest apart, and there it is half of their distance: 32 of 448, 8192 of 57344 and 1 of 127.
template <class Q>
inline constexpr double code_error = 1.0 / encoded_steps<Q>;

/// Returns the magnitude by which the error of a block is bounded.
/// \param largest  the largest finite magnitude of the block
template <class Q>
constexpr double block_magnitude(double largest) {
  const double least = double(most_encoded<Q>) * double(least_scale);
  return largest < least ? least : largest;
}

namespace detail {
using chorale::detail::product;
/// Adds without becoming part of another operation, as product() multiplies.
CHORALE_HD float sum(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
}  // namespace detail

/// Returns the magnitude of a finite value, and 0 for others.
CHORALE_HD float finite_magnitude(float value) {
  const float magnitude = value < 0 ? -value : value;
  return magnitude <= 3.4028234e38f ? magnitude : 0.0f;
}

/// Returns the code of a value that has been divided by its block's scale. Rounds to nearest, ties to even.
template <class Q>
CHORALE_HD Q code_of(float scaled) {
  static_assert(is_code<Q>);
  if constexpr (std::is_same_v<Q, int8_t>) {
    // Finite values are at most a little above 127. The largest of them would round to 128 nowhere.
    if (!(scaled >= -127.5f && scaled <= 127.5f)) return int8_t(-128);
    constexpr float whole = 12582912.0f;  // 1.5 * 2^23: floats of this size are the whole numbers
    return int8_t(detail::sum(detail::sum(scaled, whole), -whole));
  } else {
    return from_float<Q>(scaled);
  }
}

/// Returns the value of a code, still divided by the scale. In int8_t the code -128 is the NaN.
template <class Q>
CHORALE_HD float value_of_code(Q code) {
  if constexpr (std::is_same_v<Q, int8_t>) {
    return code == -128 ? chorale::detail::bits_float(0x7fffffffu) : float(code);
  } else {
    return to_float(code);
  }
}

}  // namespace chorale::fused
