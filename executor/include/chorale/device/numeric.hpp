#pragma once
// These element types and their arithmetic give the same bits on the CPU and on CUDA.
//
// Narrow floats are storage types: they are widened to float, combined there, and rounded once (to nearest,
// ties to even). A NaN stays a NaN, in the canonical form that the GPU's conversions give (all exponent and
// mantissa bits set, no sign). A value that is too large becomes infinity, so you can see an overflow; in
// fp8_e4m3, which has no infinities, it becomes NaN. docs/numbers.md has the rules of all types and
// operators.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "chorale/device/macros.hpp"
#include "chorale/types.hpp"

namespace chorale {

struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};
/// Is an OCP E4M3 float ("fn"). It has no infinities, its NaN is 0x7f, and its largest value is 448.
struct fp8_e4m3 {
  uint8_t bits;
};
/// Is an OCP E5M2 float. It has infinities, and its largest finite value is 57344.
struct fp8_e5m2 {
  uint8_t bits;
};

namespace detail {

CHORALE_HD uint32_t float_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

CHORALE_HD float bits_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The conversions below work on a uint32_t or on a vector of them (U), so one formula serves one element and
// several at once. They compute every case and select, without branches.

#if !defined(__CUDACC__)
/// Holds 16 bytes of A side by side, in the vector extension of GCC and Clang.
template <class A>
struct LanesOf {
  typedef A type __attribute__((vector_size(16)));
};
template <class A>
using Lanes = typename LanesOf<A>::type;
CHORALE_HD Lanes<uint32_t> float_bits(Lanes<float> value) { return (Lanes<uint32_t>)value; }
CHORALE_HD Lanes<float> bits_float(Lanes<uint32_t> bits) { return (Lanes<float>)bits; }
CHORALE_HD Lanes<float> count_float(Lanes<uint32_t> count) {
  return __builtin_convertvector((Lanes<int32_t>)count, Lanes<float>);
}
/// Returns value < limit ? yes : no in each lane. Values are below 2^31, where signed comparison is cheaper.
CHORALE_HD Lanes<uint32_t> below(Lanes<uint32_t> value, uint32_t limit, Lanes<uint32_t> yes,
                                 Lanes<uint32_t> no) {
  return (Lanes<int32_t>)value < int32_t(limit) ? yes : no;
}
#endif
CHORALE_HD float count_float(uint32_t count) { return float(int32_t(count)); }
/// Returns value < limit ? yes : no.
CHORALE_HD uint32_t below(uint32_t value, uint32_t limit, uint32_t yes, uint32_t no) {
  return value < limit ? yes : no;
}

/// Rounds a float's magnitude bits to a narrow float with `Mantissa` mantissa bits and exponent bias `Bias`,
/// and returns the narrow float's magnitude bits. Rounds to nearest even as if exponents had no upper limit:
/// the caller handles overflow and NaN.
template <int Mantissa, int Bias, class U>
CHORALE_HD U round_magnitude(U magnitude) {
  constexpr int drop = 23 - Mantissa;
  // Rebiasing and rounding are one addition: half a unit less one, plus the lowest kept bit, rounds ties to
  // even.
  constexpr uint32_t rebias_and_half = ((1u << (drop - 1)) - 1) - (uint32_t(127 - Bias) << 23);
  const U normal = (magnitude + rebias_and_half + ((magnitude >> drop) & 1u)) >> drop;
  // Below the smallest normal the unit is fixed. The addition of a float with the same unit lets the hardware
  // round.
  constexpr uint32_t same_unit = uint32_t(127 + 1 - Bias - Mantissa + 23) << 23;
  const U subnormal = float_bits(bits_float(magnitude) + bits_float(same_unit)) - same_unit;
  constexpr uint32_t smallest_normal = uint32_t(127 + 1 - Bias) << 23;
  return below(magnitude, smallest_normal, subnormal, normal);
}

/// Returns the float bits for a narrow float's magnitude bits, which are neither infinity nor NaN.
template <int Mantissa, int Bias, class U>
CHORALE_HD U widen_magnitude(U magnitude) {
  const U normal = (magnitude << (23 - Mantissa)) + (uint32_t(127 - Bias) << 23);
  // A subnormal is its mantissa times a fixed unit. Both the conversion and the product are exact.
  const float unit = bits_float(uint32_t(127 + 1 - Bias - Mantissa) << 23);
  const U subnormal = float_bits(count_float(magnitude) * unit);
  return below(magnitude, 1u << Mantissa, subnormal, normal);
}

constexpr uint32_t above_infinity = 0x7f800001u;  ///< from here on a float's magnitude is that of a NaN

/// Converts a narrow float's bits to a float's bits.
template <class T, class U>
CHORALE_HD U widen_bits(U bits) {
  if constexpr (std::is_same_v<T, bf16>) {
    return bits << 16;
  } else if constexpr (std::is_same_v<T, f16>) {
    const U magnitude = bits & 0x7fffu, special = (magnitude << 13) | 0x7f800000u;
    return (bits & 0x8000u) << 16 | below(magnitude, 0x7c00u, widen_magnitude<10, 15>(magnitude), special);
  } else if constexpr (std::is_same_v<T, fp8_e5m2>) {
    return widen_bits<f16>(bits << 8);  // the upper half of an f16
  } else {
    static_assert(std::is_same_v<T, fp8_e4m3>);
    const U magnitude = bits & 0x7fu, nan = magnitude | 0x7fffffffu;
    return (bits & 0x80u) << 24 | below(magnitude, 0x7fu, widen_magnitude<3, 7>(magnitude), nan);
  }
}

/// Converts a float's bits to a narrow float's bits.
template <class T, class U>
CHORALE_HD U narrow_bits(U bits) {
  const U magnitude = bits & 0x7fffffffu, zero = magnitude & 0u;
  if constexpr (std::is_same_v<T, bf16>) {
    const U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return below(magnitude, above_infinity, rounded, zero + 0x7fffu);
  } else if constexpr (std::is_same_v<T, f16>) {
    // All values from 65536 on are infinity. From 65520 on, the rounding itself gives infinity.
    const U rounded = below(magnitude, 0x47800000u, round_magnitude<10, 15>(magnitude), zero + 0x7c00u);
    return below(magnitude, above_infinity, rounded | ((bits >> 16) & 0x8000u), zero + 0x7fffu);
  } else if constexpr (std::is_same_v<T, fp8_e4m3>) {
    // Up to 464, which is half a unit above the largest (even) value, rounding gives 448.
    return below(magnitude, 0x43e80001u, round_magnitude<3, 7>(magnitude) | ((bits >> 24) & 0x80u),
                 zero + 0x7fu);
  } else {
    static_assert(std::is_same_v<T, fp8_e5m2>);
    // All values from 65536 on are infinity. From 61440 on, the rounding itself gives infinity.
    const U rounded = below(magnitude, 0x47800000u, round_magnitude<2, 15>(magnitude), zero + 0x7cu);
    return below(magnitude, above_infinity, rounded | ((bits >> 24) & 0x80u), zero + 0x7fu);
  }
}

}  // namespace detail

// -- Conversions

CHORALE_HD float to_float(f16 value) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  return detail::bits_float(detail::widen_bits<f16>(uint32_t(value.bits)));
#endif
}
CHORALE_HD float to_float(bf16 value) {
  return detail::bits_float(detail::widen_bits<bf16>(uint32_t(value.bits)));
}
CHORALE_HD float to_float(fp8_e4m3 value) {
  return detail::bits_float(detail::widen_bits<fp8_e4m3>(uint32_t(value.bits)));
}
CHORALE_HD float to_float(fp8_e5m2 value) { return to_float(f16{uint16_t(value.bits << 8)}); }

/// Rounds `value` to T, a narrow float.
template <class T>
CHORALE_HD T from_float(float value) {
  T result;
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, f16>) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
  } else if constexpr (std::is_same_v<T, bf16>) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
  }
#if __CUDA_ARCH__ >= 890
  uint16_t pair = 0;
  if constexpr (std::is_same_v<T, fp8_e4m3>) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    return {uint8_t(fabsf(value) <= 464.0f ? pair : 0x7f)};
  } else if constexpr (std::is_same_v<T, fp8_e5m2>) {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    return {uint8_t(fabsf(value) >= 61440.0f ? (pair & 0x80) | 0x7c : pair)};
  }
#endif
#endif
  result.bits = decltype(result.bits)(detail::narrow_bits<T>(detail::float_bits(value)));
  return result;
}

/// Clamps a value to the finite range of an fp8 type. Use it for scaled data, which should never overflow. A
/// NaN stays.
template <class T>
CHORALE_HD float clamp_to(float value) {
  static_assert(std::is_same_v<T, fp8_e4m3> || std::is_same_v<T, fp8_e5m2>);
  const float most = std::is_same_v<T, fp8_e4m3> ? 448.0f : 57344.0f;
  return value > most ? most : value < -most ? -most : value;
}

// -- Accumulating

template <class T>
inline constexpr bool is_narrow_float = std::is_same_v<T, f16> || std::is_same_v<T, bf16> ||
                                        std::is_same_v<T, fp8_e4m3> || std::is_same_v<T, fp8_e5m2>;

/// Is the type in which elements of type T are combined.
template <class T>
using Accumulator = std::conditional_t<is_narrow_float<T>, float, T>;

template <class T>
CHORALE_HD Accumulator<T> widen(T value) {
  if constexpr (is_narrow_float<T>) {
    return to_float(value);
  } else {
    return value;
  }
}

/// Rounds an accumulated value to T.
template <class T>
CHORALE_HD T narrow(Accumulator<T> value) {
  if constexpr (is_narrow_float<T>) {
    return from_float<T>(value);
  } else {
    return value;
  }
}

/// Is true if combine() adds for this operator.
template <ReduceOp Op>
inline constexpr bool is_sum = Op == ReduceOp::sum || Op == ReduceOp::avg;

namespace detail {

CHORALE_HD bool has_sign(float value) { return float_bits(value) >> 31 != 0; }
CHORALE_HD bool has_sign(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >> 63 != 0;
}

/// Returns the min or max of two values. For floats it is a NaN when either is one, and -0 is less than +0,
/// so the result does not depend on the order.
template <ReduceOp Op, class A>
CHORALE_HD A extreme(A sum, A next) {
  constexpr bool least = Op == ReduceOp::min;
  if constexpr (std::is_integral_v<A>) {
    return (least ? sum < next : sum > next) ? sum : next;
  } else {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (std::is_same_v<A, float>) {
      float result;
      if constexpr (least) {
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(sum), "f"(next));
      } else {
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(sum), "f"(next));
      }
      return result;
    }
#endif
    const bool stays =
        (least ? sum < next : sum > next) | (sum != sum) | ((sum == next) & (has_sign(sum) == least));
    return stays ? sum : next;
  }
}

}  // namespace detail

/// Combines `sum` with one more operand. A is an Accumulator. Integers wrap. min and max give NaN when either
/// is NaN, and -0 is less than +0. For avg it adds, and finish_avg() divides at the end.
template <ReduceOp Op, class A>
CHORALE_HD A combine(A sum, A next) {
  static_assert(is_sum<Op> || Op == ReduceOp::min || Op == ReduceOp::max || Op == ReduceOp::prod);
  if constexpr (Op == ReduceOp::min || Op == ReduceOp::max) {
    return detail::extreme<Op>(sum, next);
  } else if constexpr (std::is_integral_v<A>) {
    // We compute in unsigned, at least as wide as unsigned int. Signed overflow is undefined, also after the
    // promotion of a narrower product.
    using Wide = std::common_type_t<std::make_unsigned_t<A>, unsigned>;
    return is_sum<Op> ? A(Wide(sum) + Wide(next)) : A(Wide(sum) * Wide(next));
  } else {
    return is_sum<Op> ? sum + next : sum * next;
  }
}

/// Returns the average, given a sum of n values, n > 0. Integers are truncated towards zero.
template <class T>
CHORALE_HD Accumulator<T> finish_avg(Accumulator<T> sum, uint32_t n) {
  using A = Accumulator<T>;
  if constexpr (std::is_integral_v<A>) {
    using Wide = std::conditional_t<std::is_same_v<A, uint64_t>, uint64_t, int64_t>;
    return A(Wide(sum) / Wide(n));
  } else {
    return sum / A(n);
  }
}

/// Returns the product of two elements, rounded to their type. Integers wrap.
template <class T>
CHORALE_HD T scaled(T value, T factor) {
  return narrow<T>(combine<ReduceOp::prod>(widen(value), widen(factor)));
}

// -- From values to types

template <class T>
struct TypeTag {
  using type = T;
};

/// Calls f(TypeTag<T>{}) for the type that `type` names, and returns its result.
template <class F>
CHORALE_FN decltype(auto) with_dtype(DType type, F&& f) {
  switch (type) {
    case DType::f32:
      break;
    case DType::f16:
      return f(TypeTag<f16>{});
    case DType::bf16:
      return f(TypeTag<bf16>{});
    case DType::f64:
      return f(TypeTag<double>{});
    case DType::i32:
      return f(TypeTag<int32_t>{});
    case DType::u32:
      return f(TypeTag<uint32_t>{});
    case DType::i64:
      return f(TypeTag<int64_t>{});
    case DType::u8:
      return f(TypeTag<uint8_t>{});
    case DType::i8:
      return f(TypeTag<int8_t>{});
    case DType::fp8_e4m3:
      return f(TypeTag<fp8_e4m3>{});
    case DType::fp8_e5m2:
      return f(TypeTag<fp8_e5m2>{});
    case DType::u64:
      return f(TypeTag<uint64_t>{});
  }
  return f(TypeTag<float>{});
}

template <ReduceOp Op>
using OpTag = std::integral_constant<ReduceOp, Op>;

/// Calls f(OpTag<Op>{}) for the operation that `op` names, and returns its result. avg stays avg.
template <class F>
CHORALE_FN decltype(auto) with_reduce_op(ReduceOp op, F&& f) {
  switch (op) {
    case ReduceOp::sum:
      break;
    case ReduceOp::min:
      return f(OpTag<ReduceOp::min>{});
    case ReduceOp::max:
      return f(OpTag<ReduceOp::max>{});
    case ReduceOp::prod:
      return f(OpTag<ReduceOp::prod>{});
    case ReduceOp::avg:
      return f(OpTag<ReduceOp::avg>{});
  }
  return f(OpTag<ReduceOp::sum>{});
}

}  // namespace chorale
