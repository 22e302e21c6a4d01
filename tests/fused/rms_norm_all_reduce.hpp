#pragma once
#include <cmath>
#include <cstdint>

#include "tests/fused/rms_norm_row.hpp"

/// Consumes each row of the sum: residual += row; out = residual / rms(residual) * weight.
template <class T>
struct RmsNormConsume {
  using block_hook = void;
  T* residual;
  const T* weight;
  float epsilon;

  template <class X>
  CHORALE_FN void consume(const chorale::Ctx<X>& ctx, const chorale::Group& group,
                          chorale::TileIn tile) const {
    const uint32_t cols = ctx.cols;
    const uint64_t rows = tile.bytes / sizeof(T) / cols;
    if (cols % (chorale::unit_bytes / sizeof(T)) == 0 && ctx.index % cols == 0) {
      // All threads take rows of whole units one after the other, 16 bytes at a time.
      for (uint64_t row = 0; row < rows; ++row) {
        const char* const sums = static_cast<const char*>(tile.data) + row * cols * sizeof(T);
        rms_norm_row<1>(group, *this, static_cast<T*>(ctx.out), ctx.index / cols + row, cols,
                        [sums](uint64_t unit, chorale::Unit& sum) {
                          sum = chorale::load_unit(sums + unit * chorale::unit_bytes);
                          return chorale::Stop::none;
                        });
      }
      return;
    }
    const chorale::Group part = group.warps();  // one warp per row
    const uint32_t warps = group.size / part.size, warp = part.id % warps;
    for (uint64_t row = warp; row < rows; row += warps) {
      const T* const sum = reinterpret_cast<const T*>(tile.data) + row * cols;
      T* const own = residual + ctx.index + row * cols;
      float squares = 0;
      for (uint32_t col = part.rank; col < cols; col += part.size) {
        const float value = chorale::widen(sum[col]) + chorale::widen(own[col]);
        own[col] = chorale::narrow<T>(value);
        squares += value * value;
      }
      squares = chorale::add_up(part, squares);
      const float scale = 1.0f / std::sqrt(squares / float(cols) + epsilon);
      for (uint32_t col = part.rank; col < cols; col += part.size) {
        static_cast<T*>(ctx.out)[ctx.index + row * cols + col] =
            chorale::narrow<T>(chorale::widen(own[col]) * scale * chorale::widen(weight[col]));
      }
    }
  }
};

/// All-reduces `rows` rows of `cols` elements, and normalises the result as it arrives.
template <class T>
struct RmsNormAllReduce {
  chorale::EndpointTable table;
  const T* in;
  T* out;
  uint32_t rows, cols;
  uint64_t slot_bytes;  ///< Transport::slot_bytes(), at least the bytes of a row
  RmsNormConsume<T> norm;

  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    const uint64_t row_bytes = cols * sizeof(T);
    chorale::Leg leg;
    leg.in = in;
    leg.out = out;
    leg.bytes = rows * row_bytes;
    leg.tile_bytes = slot_bytes / row_bytes * row_bytes;  // whole rows
    leg.cols = cols;
    return chorale::all_reduce<chorale::ReduceOp::sum, T>(group, table, leg, chorale::CopyProduce{}, norm,
                                                          deadline);
  }
};
