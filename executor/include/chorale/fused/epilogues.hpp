#pragma once
// Epilogues take the normalised rows of rms_norm.hpp.
//
// An epilogue is a function object that all threads of a group call for each row, as in
//   template <class Row> void operator()(const Group& group, const Row& row) const
// It stores what it makes of the row. It may use functions of the group, but does not wait for peers. Its
// reads_memory(group, cols, per_unit) says whether it calls Row::memory().

#include <cstdint>

#include "chorale/device.hpp"
#include "chorale/fused/codes.hpp"

namespace chorale::fused {

namespace detail {
/// Stores `count` elements at `to`, at once if they are N and aligned.
template <class O, uint32_t N>
CHORALE_FN void store_few(O* to, const O (&from)[N], uint32_t count) {
#if defined(__CUDACC__)
  using Whole = Pack<O, int(N)>;
  if constexpr (N * sizeof(O) <= 16) {
    if (count == N && reinterpret_cast<uintptr_t>(to) % sizeof(Whole) == 0) {
      Whole whole;
#pragma unroll
      for (uint32_t item = 0; item < N; ++item) whole.item[item] = from[item];
      *reinterpret_cast<Whole*>(to) = whole;
      return;
    }
  }
#pragma unroll
#endif
  for (uint32_t item = 0; item < N; ++item) {
    if (item < count) to[item] = from[item];
  }
}
}  // namespace detail

/// Stores rows as elements of type O, one after the other. `out` may be the `in` of the call if O is T.
template <class O>
struct StoreRow {
  O* out;

  CHORALE_FN bool reads_memory(const Group&, uint32_t, uint32_t) const { return false; }
  template <class Row>
  CHORALE_FN void operator()(const Group&, const Row& row) const {
    O* const to = out + row.row() * row.cols();
    row.each([&](uint32_t col, const auto& values, uint32_t count) {
      O few[Row::per_unit];
      for (uint32_t item = 0; item < Row::per_unit; ++item) few[item] = narrow<O>(values[item]);
      detail::store_few(to + col, few, count);
    });
  }
};

/// Stores rows as codes of type Q, with a scale for each row or for each block of columns; see codes.hpp.
template <class Q>
struct QuantiseRow {
  Q* out;              ///< rows of codes, one after the other
  float* scales;       ///< for each row its scales, one after the other: scale_count(cols) of them
  uint32_t block = 0;  ///< columns that share a scale, any number; 0: a whole row

  CHORALE_HD uint32_t scale_count(uint32_t cols) const { return block == 0 ? 1 : (cols + block - 1) / block; }

  CHORALE_FN bool reads_memory(const Group& group, uint32_t cols, uint32_t per_unit) const {
    return block != 0 && block < cols && lanes(group, per_unit) == 0;
  }

  template <class Row>
  CHORALE_FN void operator()(const Group& group, const Row& row) const {
    const uint32_t cols = row.cols();
    Q* const to = out + row.row() * cols;
    float* const scale_to = scales + row.row() * scale_count(cols);
    if (block == 0 || block >= cols) {
      float largest = 0;
      row.each(
          [&](uint32_t, const auto& values, uint32_t count) { largest = larger(largest, values, count); });
      const float scale = scale_of<Q>(largest_of(group, largest));
      row.each([&](uint32_t col, const auto& values, uint32_t count) {
        store<Row::per_unit>(to + col, values, count, scale);
      });
      if (group.leader()) *scale_to = scale;
      return;
    }
#if defined(__CUDACC__)
    if (const uint32_t by = lanes(group, Row::per_unit)) {
      row.each([&](uint32_t col, const auto& values, uint32_t count) {
        const float largest =
            chorale::detail::over_lanes(larger(0.0f, values, count), by, chorale::detail::Larger{});
        const float scale = scale_of<Q>(largest);
        store<Row::per_unit>(to + col, values, count, scale);
        if (count != 0 && group.rank % by == 0) scale_to[col / block] = scale;
      });
      return;
    }
#endif
    by_warps(*this, group, row.memory());
  }

 private:
  /// Returns how many neighbouring lanes have the units of a block; 0 if warps do not consist of such lanes.
  CHORALE_FN uint32_t lanes(const Group& group, uint32_t per_unit) const {
#if defined(__CUDACC__)
    const uint32_t by = block / per_unit;
    return block % per_unit == 0 && by <= 32 && chorale::detail::is_power_of_two(by) && group.size % 32 == 0
               ? by
               : 0;
#else
    (void)group, (void)per_unit;
    return 0;  // fibers have no lanes
#endif
  }
  /// Stores a row whose blocks are not units of neighbouring lanes. Each warp takes blocks, and reads what
  /// other threads have kept.
  template <class Memory>
  CHORALE_COLD static void by_warps(QuantiseRow self, Group group, Memory row) {
    group.sync();
    Q* const to = self.out + row.row * row.cols;
    const Group part = group.warps();
    const uint32_t warps = group.size / part.size, each = self.scale_count(row.cols);
    for (uint32_t number = part.id % warps; number < each; number += warps) {
      const uint32_t first = number * self.block;
      const uint32_t end = row.cols - first < self.block ? row.cols : first + self.block;
      float largest = 0;
      for (uint32_t col = first + part.rank; col < end; col += part.size) {
        const float magnitude = finite_magnitude(row.at(col));
        largest = largest < magnitude ? magnitude : largest;
      }
      const float scale = scale_of<Q>(largest_of(part, largest));
      for (uint32_t col = first + part.rank; col < end; col += part.size) {
        to[col] = code_of<Q>(detail::product(row.at(col), 1.0f / scale));
      }
      if (part.leader()) self.scales[row.row * each + number] = scale;
    }
  }
  template <uint32_t N>
  CHORALE_FN static float larger(float largest, const float (&values)[N], uint32_t count) {
    for (uint32_t item = 0; item < N; ++item) {
      const float magnitude = item < count ? finite_magnitude(values[item]) : 0.0f;
      largest = largest < magnitude ? magnitude : largest;
    }
    return largest;
  }
  template <uint32_t N>
  CHORALE_FN static void store(Q* to, const float (&values)[N], uint32_t count, float scale) {
    const float inverse = 1.0f / scale;
    Q few[N];
    for (uint32_t item = 0; item < N; ++item) few[item] = code_of<Q>(detail::product(values[item], inverse));
    detail::store_few(to, few, count);
  }
};

}  // namespace chorale::fused
