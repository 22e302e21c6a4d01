#pragma once
// These functions encode and decode elements by the formats of codecs.def. The CPU and CUDA get the same
// bits.
//
// The scale of a block is its largest magnitude divided by the largest encoded one, but at least 2^-126, so
// that it is never subnormal. An element is divided by it and rounded to nearest, ties to even. If a block
// has a NaN or an infinity, its scale is not finite, and every element of it decodes to NaN.

#include <cstdint>
#include <type_traits>

#include "chorale/codec.hpp"
#include "chorale/device/numeric.hpp"

namespace chorale {

/// Is the largest magnitude of an encoded element of type E.
template <class E>
inline constexpr float most_encoded = 0;
#define CHORALE_CODEC(name, element, most, steps) \
  template <> \
  inline constexpr float most_encoded<element> = most;
#include "chorale/codecs.def"

/// Bounds the error of an element by the largest magnitude of its block, as codec_steps() does: 1 /
/// encoded_steps<E>.
template <class E>
inline constexpr uint32_t encoded_steps = 1;
#define CHORALE_CODEC(name, element, most, steps) \
  template <> \
  inline constexpr uint32_t encoded_steps<element> = steps;
#include "chorale/codecs.def"

/// Is the smallest scale, 2^-126. No smaller float has full precision, and a GPU may flush it to zero.
inline constexpr float least_scale = 1.17549435e-38f;

namespace detail {
// nvcc may make one operation of a product and a sum, which rounds once. Then the CPU would give other bits.
CHORALE_HD float product(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
}  // namespace detail

/// Returns the codec of Codec::packed().
CHORALE_HD Codec unpacked(uint16_t packed) { return {CodecFormat((packed & 15) - 1), uint32_t(packed >> 4)}; }

/// Returns the larger one of `largest`, the largest magnitude so far, and the magnitude of another element.
CHORALE_HD float larger_magnitude(float largest, float value) {
  return combine<ReduceOp::max>(largest, value < 0 ? -value : value);
}

/// Returns the scale of a block. It is not finite if `largest` is not.
template <class E>
CHORALE_HD float scale_of(float largest) {
  const float scale = largest / most_encoded<E>;
  return scale < least_scale ? least_scale : scale;
}

template <class E>
CHORALE_HD E encoded(float value, float scale) {
  const float quotient = value / scale;
  if constexpr (std::is_same_v<E, int8_t>) {
    // A float of this size has no digits after the point.
    constexpr float rounder = 12582912.0f;
    const float most = most_encoded<E>;
    if (!(quotient == quotient)) return 0;
    return E((quotient > most ? most : quotient < -most ? -most : quotient) + rounder - rounder);
  } else {
    return narrow<E>(clamp_to<E>(quotient));
  }
}

template <class E>
CHORALE_HD float decoded(E value, float scale) {
  return detail::product(float(widen(value)), scale);
}

/// Calls f(TypeTag<E>) for the type of the encoded elements, and returns its result.
template <class F>
CHORALE_HD auto with_codec_format(CodecFormat format, const F& f) {
  switch (format) {
#define CHORALE_CODEC(name, element, most, steps) \
  case CodecFormat::name: \
    return f(TypeTag<element>{});
#include "chorale/codecs.def"
  }
  return f(TypeTag<int8_t>{});
}

}  // namespace chorale
