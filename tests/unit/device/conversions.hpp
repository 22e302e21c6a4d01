/// \file
/// Computes the expected results of conversions between element types. They follow from the definitions of
/// the types, and use nothing from numeric.hpp.
#pragma once

#include <algorithm>
#include <chorale/types.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace chorale::test {

using Bytes = std::vector<uint8_t>;

/// Holds the value of an element exactly: every f64, i64 and u64 is exact in a long double.
using Exact = long double;
static_assert(std::numeric_limits<Exact>::digits >= 64);

inline bool is_whole(DType type) {
  return type == DType::i32 || type == DType::u32 || type == DType::i64 || type == DType::u64 ||
         type == DType::u8 || type == DType::i8;
}

/// Lists the finite, non-negative values of a float of 8 or 16 bits, indexed by their bits.
struct Narrow {
  uint64_t infinity = 0, nan = 0, sign = 0;
  std::vector<Exact> values;

  Narrow(int exponent_bits, int mantissa_bits, bool has_infinity)
      : sign(uint64_t(1) << (exponent_bits + mantissa_bits)) {
    nan = sign - 1;
    infinity = has_infinity ? nan >> mantissa_bits << mantissa_bits : nan;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const uint64_t unit = uint64_t(1) << mantissa_bits;
    for (uint64_t bits = 0; bits < infinity; ++bits) {
      const int exponent = int(bits / unit);
      const uint64_t mantissa = bits % unit + (exponent ? unit : 0);
      values.push_back(std::ldexp(Exact(mantissa), (exponent ? exponent : 1) - bias - mantissa_bits));
    }
  }

  /// Returns the bits of the nearest value, or of the even one if two are equally near. `infinity` is NaN if
  /// the type has no infinity.
  uint64_t nearest(Exact magnitude) const {
    const auto above = std::upper_bound(values.begin(), values.end(), magnitude);
    const uint64_t below = uint64_t(above - values.begin()) - 1;
    if (above == values.end()) {
      const Exact half = values[below] + (values[below] - values[below - 1]) / 2;
      return magnitude < half || (magnitude == half && below % 2 == 0) ? below : infinity;
    }
    const Exact middle = (values[below] + *above) / 2;
    return magnitude < middle || (magnitude == middle && below % 2 == 0) ? below : below + 1;
  }

  Exact value(uint64_t bits) const {
    const uint64_t magnitude = bits % sign;
    const Exact size = magnitude < values.size()                  ? values[magnitude]
                       : magnitude == infinity && infinity != nan ? std::numeric_limits<Exact>::infinity()
                                                                  : std::numeric_limits<Exact>::quiet_NaN();
    return bits >= sign ? -size : size;
  }

  /// Returns the narrow float of a type; null if the type is not one.
  static const Narrow* of(DType type) {
    static const Narrow f16(5, 10, true), bf16(8, 7, true), e4m3(4, 3, false), e5m2(5, 2, true);
    return type == DType::f16        ? &f16
           : type == DType::bf16     ? &bf16
           : type == DType::fp8_e4m3 ? &e4m3
           : type == DType::fp8_e5m2 ? &e5m2
                                     : nullptr;
  }
};

template <class T>
void append(Bytes& to, T value) {
  const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

template <class T>
T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline Exact exact(DType type, const uint8_t* from) {
  switch (type) {
    case DType::f32:
      return load<float>(from);
    case DType::f64:
      return load<double>(from);
    case DType::i32:
      return load<int32_t>(from);
    case DType::u32:
      return load<uint32_t>(from);
    case DType::i64:
      return Exact(load<int64_t>(from));
    case DType::u64:
      return Exact(load<uint64_t>(from));
    case DType::u8:
      return load<uint8_t>(from);
    case DType::i8:
      return load<int8_t>(from);
    default:
      return Narrow::of(type)->value(dtype_size(type) == 2 ? load<uint16_t>(from) : *from);
  }
}

/// Holds the smallest and largest value of an integer type.
struct Ends {
  Exact least, most;
  static Ends of(DType type) {
    const bool is_signed = type == DType::i8 || type == DType::i32 || type == DType::i64;
    const int bits = int(dtype_size(type)) * 8 - (is_signed ? 1 : 0);
    const Exact end = std::ldexp(Exact(1), bits);
    return {is_signed ? -end : 0, end - 1};
  }
};

/// Appends the bytes of one converted element.
inline void append_converted(Bytes& to, DType type, DType from, Exact value) {
  uint64_t bits = 0;
  const bool nan = std::isnan(value);
  if (type == DType::f32)
    return append(to, nan ? load<float>(Bytes{0xff, 0xff, 0xff, 0x7f}.data()) : float(value));
  if (type == DType::f64)
    return append(
        to, nan ? load<double>(Bytes{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}.data()) : double(value));
  if (const Narrow* const narrow = Narrow::of(type)) {
    bits = nan ? narrow->nan : narrow->nearest(std::fabs(value));
    if (bits != narrow->nan && std::signbit(value)) bits += narrow->sign;
  } else if (!nan) {
    const Ends ends = Ends::of(type);
    const Exact there = is_whole(from) ? value : std::fmin(std::fmax(value, ends.least), ends.most);
    bits = there < 0 ? 0 - uint64_t(-there) : uint64_t(there);
  }
  for (size_t byte = 0; byte < dtype_size(type); ++byte) to.push_back(uint8_t(bits >> 8 * byte));
}

inline Bytes converted(DType type, DType from, const Bytes& values) {
  Bytes all;
  for (size_t at = 0; at < values.size(); at += dtype_size(from))
    append_converted(all, type, from, exact(from, values.data() + at));
  return all;
}

/// Returns the values at which conversions change: values of narrow types, the middles between them, and the
/// limits of integer types.
inline std::vector<Exact> turning_points() {
  std::vector<Exact> points{0, std::numeric_limits<float>::max(), std::ldexp(Exact(1), 63),
                            std::numeric_limits<Exact>::infinity()};
  for (const DType type : all_dtypes) {
    if (is_whole(type))
      for (const Exact end : {Ends::of(type).least, Ends::of(type).most})
        for (const Exact beside : {-1.0L, -0.5L, 0.0L, 0.5L, 1.0L}) points.push_back(std::fabs(end + beside));
    const Narrow* const narrow = Narrow::of(type);
    if (!narrow) continue;
    const size_t step = narrow->values.size() > 1000 ? 13 : 1;
    for (size_t bits = 1; bits < narrow->values.size(); bits += step) {
      const Exact value = narrow->values[bits], before = narrow->values[bits - 1];
      points.insert(points.end(), {value, (value + before) / 2});
    }
    const Exact largest = narrow->values.back();
    points.insert(points.end(),
                  {largest, largest + (largest - narrow->values[narrow->values.size() - 2]) / 2});
  }
  return points;
}

template <class T>
void append_near(Bytes& to, Exact point) {
  if constexpr (std::is_integral_v<T>) {
    if (point >= 0x1p64L) return;
    for (const int64_t beside : {-1, 0, 1})
      for (const int64_t sign : {-1, 1}) append(to, T(uint64_t(sign) * (uint64_t(point) + uint64_t(beside))));
  } else {
    const T near = T(point);
    for (const T one :
         {near, std::nextafter(near, T(0)), std::nextafter(near, std::numeric_limits<T>::infinity())})
      for (const T sign : {-1, 1}) append(to, sign * one);
  }
}

/// Returns elements of a type: all of them, or those at the turning points, NaNs, and some others.
inline Bytes values_to_convert(DType type) {
  Bytes all;
  if (dtype_size(type) <= 2) {
    for (uint32_t bits = 0; bits < 1u << 8 * dtype_size(type); ++bits)
      dtype_size(type) == 1 ? append(all, uint8_t(bits)) : append(all, uint16_t(bits));
    return all;
  }
  for (const Exact point : turning_points()) {
    switch (type) {
      case DType::f32:
        append_near<float>(all, point);
        break;
      case DType::f64:
        append_near<double>(all, point);
        break;
      case DType::i64:
        append_near<int64_t>(all, point);
        break;
      case DType::u64:
        append_near<uint64_t>(all, point);
        break;
      default:
        append_near<uint32_t>(all, point);
    }
  }
  std::mt19937_64 any(7);
  for (int k = 0; k < 2000; ++k) {
    const uint64_t bits = any();
    dtype_size(type) == 4 ? append(all, uint32_t(bits)) : append(all, bits);
  }
  if (type == DType::f32) append(all, 0xffc12345u);
  if (type == DType::f64) append(all, 0xfff8123456789abcu);
  return all;
}

}  // namespace chorale::test
