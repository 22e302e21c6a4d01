#pragma once
// TransposeTiles is a block hook that transposes a matrix. It reads and writes contiguous runs, on CUDA
// through shared memory.

#include <cstdint>

#include "chorale/device/context.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/hooks.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

/// Sends the transpose as TransposeProduce does, but as a block hook. Tiles must be whole rows of the
/// transpose: Leg::tile_bytes is a multiple of `rows` elements.
template <class T>
struct TransposeTiles {
  using block_hook = void;

  template <class X>
  CHORALE_FN void produce(const Ctx<X>& ctx, const Group& group, TileOut tile) const {
    if (ctx.index % ctx.rows != 0 || ctx.count % ctx.rows != 0) refuse("a tile cuts a row of the transpose");
    const Strides strides = strides_or_dense(ctx.in_strides, ctx.cols);
    const T* const from = static_cast<const T*>(ctx.in) + ctx.index / ctx.rows * strides.col;
    turn(group, from, strides, ctx.rows, ctx.count / ctx.rows, reinterpret_cast<T*>(tile.data), ctx.rows);
  }

  /// Sets to[col * to_row + row] = from[row][col] for rows x cols elements. The group must be the only one
  /// of its block that does this, because it uses the block's shared memory.
  CHORALE_FN static void turn(const Group& group, const T* from, const Strides& strides, uint32_t rows,
                              uint32_t cols, T* to, uint64_t to_row);
};

#if defined(__CUDACC__)
template <class T>
CHORALE_FN void TransposeTiles<T>::turn(const Group& group, const T* from, const Strides& strides,
                                        uint32_t rows, uint32_t cols, T* to, uint64_t to_row) {
  // It reads at least 64 bytes of a row, two sectors, and writes 256 elements of a column, because peers'
  // memory is fastest with long runs.
  constexpr uint32_t n = unit_bytes / sizeof(T), wide = 64 / sizeof(T), tall = 256;
  constexpr uint32_t in_row = wide / n, in_col = tall / n, units = in_row * tall;
  // Each column begins one unit after a multiple of the bank cycle, so at most two lanes share a bank.
  constexpr uint32_t pitch = tall + n;
  constexpr uint32_t ahead = 4;
  alignas(16) __shared__ unsigned char memory[wide * pitch * sizeof(T)];
  T* const piece = reinterpret_cast<T*>(memory);
  for (uint32_t col0 = 0; col0 < cols; col0 += wide) {
    for (uint32_t row0 = 0; row0 < rows; row0 += tall) {
      for (uint32_t unit = group.rank; unit < units; unit += ahead * group.size) {
        Vector<T> held[ahead];
#pragma unroll
        for (uint32_t index = 0; index < ahead; ++index) {
          const uint32_t here = unit + index * group.size;
          const uint32_t row = row0 + here / in_row, col = col0 + here % in_row * n;
          held[index] = Vector<T>{};
          if (here >= units || row >= rows || col >= cols) continue;
          const uint32_t valid = cols - col < n ? cols - col : n;
          if (strides.col == 1) {
            held[index] = load_elements<T>(from, row * strides.row + col, valid);
          } else {
#pragma unroll
            for (uint32_t item = 0; item < n; ++item) {
              if (item < valid) held[index].item[item] = from[row * strides.row + (col + item) * strides.col];
            }
          }
        }
#pragma unroll
        for (uint32_t index = 0; index < ahead; ++index) {
          const uint32_t here = unit + index * group.size;
          if (here >= units) continue;
#pragma unroll
          for (uint32_t item = 0; item < n; ++item) {
            piece[(here % in_row * n + item) * pitch + here / in_row] = held[index].item[item];
          }
        }
      }
      group.sync();
      for (uint32_t unit = group.rank; unit < units; unit += group.size) {
        const uint32_t col = unit / in_col, row = unit % in_col * n;
        if (col0 + col >= cols || row0 + row >= rows) continue;
        const uint32_t left = rows - row0 - row;
        store_elements<T>(to, (col0 + col) * to_row + row0 + row,
                          *reinterpret_cast<const Vector<T>*>(piece + col * pitch + row),
                          left < n ? left : n);
      }
      group.sync();  // makes sure that no thread overwrites data that is still read
    }
  }
}
#else
template <class T>
CHORALE_FN void TransposeTiles<T>::turn(const Group& group, const T* from, const Strides& strides,
                                        uint32_t rows, uint32_t cols, T* to, uint64_t to_row) {
  for (uint64_t item = group.rank; item < uint64_t(rows) * cols; item += group.size) {
    const uint64_t row = item % rows, col = item / rows;
    to[col * to_row + row] = from[row * strides.row + col * strides.col];
  }
}
#endif

}  // namespace chorale
