#pragma once
// These functions cut rows of any number of elements into units of 16 bytes. The last unit of a row may be
// partly filled. They also access units of windows, which are aligned.

#include <cstdint>

#include "chorale/device.hpp"

namespace chorale::fused::detail {

/// Load and store a unit at an address that is a multiple of 16. They have no branch, so that several loads
/// are in flight together.
CHORALE_FN Unit load_whole(const char* from) {
#if defined(__CUDACC__)
  return *reinterpret_cast<const Unit*>(from);
#else
  return load_unit(from);
#endif
}
CHORALE_FN void store_whole(char* to, const Unit& unit) {
#if defined(__CUDACC__)
  *reinterpret_cast<Unit*>(to) = unit;
#else
  store_unit(to, unit);
#endif
}

template <class T>
CHORALE_HD uint32_t units_in_row(uint32_t cols) {
  constexpr uint32_t n = unit_bytes / sizeof(T);
  return cols / n + (cols % n != 0 ? 1 : 0);
}

/// Returns how many elements of a row are in one of its units; 0 after its end.
template <class T>
CHORALE_HD uint32_t count_in(uint32_t unit, uint32_t cols) {
  constexpr uint32_t n = unit_bytes / sizeof(T);
  const uint32_t whole = cols / n;
  return unit < whole ? n : unit == whole ? cols % n : 0;
}

/// Copies rows of `bytes` bytes, and pads each with zeros to `padded` bytes, a multiple of 16.
CHORALE_COLD void copy_padded(Group group, const char* from, uint64_t bytes, char* to, uint64_t padded,
                              uint64_t rows) {
  for (uint64_t row = 0; row < rows; ++row) {
    transfer(group, padded, Mem(from + row * bytes, bytes), Mem(to + row * padded));
  }
}

/// Copies rows first .. first + n - 1 to `to`, where each row is whole units. Copies nothing if they are
/// there.
template <class T>
CHORALE_FN void copy_rows(const Group& group, const T* rows, uint32_t cols, char* to, uint64_t first,
                          uint64_t n) {
  const uint64_t bytes = uint64_t(cols) * sizeof(T), padded = uint64_t(units_in_row<T>(cols)) * unit_bytes;
  const char* const from = reinterpret_cast<const char*>(rows);
  if (from == to) return;
  if (bytes == padded) {
    transfer(group, n * bytes, Mem(from + first * bytes), Mem(to + first * bytes));
  } else {
    copy_padded(group, from + first * bytes, bytes, to + first * padded, padded, n);
  }
}

}  // namespace chorale::fused::detail
