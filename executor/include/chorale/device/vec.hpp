#pragma once
// These types and functions handle the 16 bytes that a thread moves in one step.

#include <cstdint>
#include <cstring>

#include "chorale/device/macros.hpp"

namespace chorale {

/// Holds N elements side by side, at most 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  static_assert(N > 0 && (N & (N - 1)) == 0 && sizeof(T) * N <= 16);
  T item[N];
};

/// Is the unit of every transfer, 16 bytes.
using Unit = Pack<uint32_t, 4>;
constexpr uint32_t unit_bytes = 16;

/// Returns how many units hold `bytes` bytes. The last one may be partly filled.
CHORALE_HD uint64_t units_of(uint64_t bytes) {
  return bytes / unit_bytes + (bytes % unit_bytes != 0 ? 1 : 0);
}

/// Returns data that a source has loaded as a unit. Sources that load another type have their own overloads.
CHORALE_HD const Unit& unit_of(const Unit& unit) { return unit; }

/// Converts a unit to its elements, and back.
template <class T>
CHORALE_HD Pack<T, int(unit_bytes / sizeof(T))> elements_of(const Unit& unit) {
  Pack<T, int(unit_bytes / sizeof(T))> result;
  std::memcpy(&result, &unit, unit_bytes);
  return result;
}
template <class T>
CHORALE_HD Unit unit_of(const Pack<T, int(unit_bytes / sizeof(T))>& elements) {
  Unit result;
  std::memcpy(&result, &elements, unit_bytes);
  return result;
}

#if defined(__CUDACC__)
namespace detail {
// Copy a unit between registers and memory in words of type W. The address is aligned for W. Each word is one
// load or store.
template <class W>
CHORALE_FN void load_words(Unit* to, const char* from, uint32_t bytes) {
  W words[unit_bytes / sizeof(W)] = {};
#pragma unroll
  for (uint32_t word = 0; word < unit_bytes / sizeof(W); ++word) {
    if ((word + 1) * sizeof(W) <= bytes) words[word] = reinterpret_cast<const W*>(from)[word];
  }
  std::memcpy(to, words, unit_bytes);
}
template <class W>
CHORALE_FN void store_words(char* to, const Unit& from, uint32_t bytes) {
  W words[unit_bytes / sizeof(W)];
  std::memcpy(words, &from, unit_bytes);
#pragma unroll
  for (uint32_t word = 0; word < unit_bytes / sizeof(W); ++word) {
    if ((word + 1) * sizeof(W) <= bytes) reinterpret_cast<W*>(to)[word] = words[word];
  }
}
}  // namespace detail
#endif

#if defined(__CUDACC__)
namespace detail {
/// Returns true if an address and a size are multiples of 4.
CHORALE_FN bool whole_words(const void* at, uint32_t bytes) {
  return (uint32_t(reinterpret_cast<uintptr_t>(at)) | bytes) % 4 == 0;
}

/// Does load_unit() for a unit that is not made of whole words of 4 bytes.
CHORALE_COLD Unit load_part(const char* from, uint32_t bytes) {
  Unit unit{};
  const uint32_t fit = uint32_t(reinterpret_cast<uintptr_t>(from)) | bytes;
  if (fit % 2 == 0) {
    load_words<uint16_t>(&unit, from, bytes);
  } else {
    load_words<uint8_t>(&unit, from, bytes);
  }
  return unit;
}
CHORALE_COLD void store_part(char* to, Unit unit, uint32_t bytes) {
  const uint32_t fit = uint32_t(reinterpret_cast<uintptr_t>(to)) | bytes;
  if (fit % 2 == 0) {
    store_words<uint16_t>(to, unit, bytes);
  } else {
    store_words<uint8_t>(to, unit, bytes);
  }
}

CHORALE_FN bool whole_unit(const void* at, uint32_t bytes) {
  return bytes == unit_bytes && reinterpret_cast<uintptr_t>(at) % unit_bytes == 0;
}
}  // namespace detail
#endif

/// Loads the first `bytes` (at most 16) bytes at `from` and sets the rest to zero. Any alignment works. CUDA
/// uses the widest access that the address and the size allow.
CHORALE_FN Unit load_unit(const char* from, uint32_t bytes = unit_bytes) {
#if defined(__CUDACC__)
  if (detail::whole_unit(from, bytes)) return *reinterpret_cast<const Unit*>(from);
  if (!detail::whole_words(from, bytes)) return detail::load_part(from, bytes);
  Unit unit;
  detail::load_words<uint32_t>(&unit, from, bytes);
  return unit;
#else
  Unit unit{};
  std::memcpy(&unit, from, bytes);
  return unit;
#endif
}

/// Stores the first `bytes` (at most 16) bytes of `unit` at `to`. Alignment is as for load_unit().
CHORALE_FN void store_unit(char* to, const Unit& unit, uint32_t bytes = unit_bytes) {
#if defined(__CUDACC__)
  if (detail::whole_unit(to, bytes)) {
    *reinterpret_cast<Unit*>(to) = unit;
  } else if (detail::whole_words(to, bytes)) {
    detail::store_words<uint32_t>(to, unit, bytes);
  } else {
    detail::store_part(to, unit, bytes);
  }
#else
  std::memcpy(to, &unit, bytes);
#endif
}

}  // namespace chorale
