#pragma once
// Hooks make the data that is sent and take the data that is received, so a kernel can change data on its way
// out of a buffer and on its way in. produce() makes data, and consume() takes it.
//
// A value hook makes or takes 16 bytes of elements at a time, in the type that travels:
//   Pack<T, 16 / sizeof(T)> produce(const Ctx<X>&) const
//   void consume(const Ctx<X>&, const Pack<T, 16 / sizeof(T)>&) const
//   Pack<T, 16 / sizeof(T)> forward(const Ctx<X>&, const Pack<T, ...>&) const
// For forward_tiles(), forward() returns the data that is passed on and consumed.
//
// A block hook makes or takes a whole tile at a time. All threads of the group call it together. It need not
// synchronise the group after its last writes:
//   using block_hook = void;
//   void produce(const Ctx<X>&, const Group&, TileOut) const
//   void consume(const Ctx<X>&, const Group&, TileIn) const
//
// Hooks are function objects, and their members hold what they need. They do not wait for peers, and write
// only to the memory that Ctx and their members give them. When a value hook returns, it has stored
// everything that it keeps. Elements from `count` on are padding: do not read them from a user's buffer or
// write them to it. In a collective the threads of a block may work with several peers at a time. So value
// hooks for two peers must not write to the same place, unless it is Ctx::out with Shards::out of 0.

#include <cstdint>
#include <type_traits>

#include "chorale/device/context.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/numeric.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

/// Holds the elements of one unit.
template <class T>
using Vector = Pack<T, int(unit_bytes / sizeof(T))>;

template <class Hook, class = void>
inline constexpr bool is_block_hook = false;
template <class Hook>
inline constexpr bool is_block_hook<Hook, std::void_t<typename Hook::block_hook>> = true;

/// Loads elements index .. index+count-1 of a buffer and sets the rest to zero. The buffer may have any
/// alignment that T allows.
template <class T>
CHORALE_FN Vector<T> load_elements(const void* buffer, uint64_t index, uint32_t count) {
  const char* const from = reinterpret_cast<const char*>(static_cast<const T*>(buffer) + index);
  return elements_of<T>(load_unit(from, count * uint32_t(sizeof(T))));
}
template <class T>
CHORALE_FN void store_elements(void* buffer, uint64_t index, const Vector<T>& values, uint32_t count) {
  char* const to = reinterpret_cast<char*>(static_cast<T*>(buffer) + index);
  store_unit(to, unit_of<T>(values), count * uint32_t(sizeof(T)));
}

/// Copy the message unchanged: CopyProduce from Ctx::in, and CopyConsume to Ctx::out. These are the fastest
/// hooks.
struct CopyProduce {};
struct CopyConsume {};

/// Drops the received data. With it, forward_tiles() only passes the data on.
struct DropConsume {
  template <class X, class V>
  CHORALE_FN void consume(const Ctx<X>&, const V&) const {}
};

/// Sends in * factor.
template <class T>
struct ScaleProduce {
  Accumulator<T> factor;

  template <class X>
  CHORALE_FN Vector<T> produce(const Ctx<X>& ctx) const {
    Vector<T> values = load_elements<T>(ctx.in, ctx.index, ctx.count);
    for (T& value : values.item) value = narrow<T>(widen(value) * factor);
    return values;
  }
};

/// Stores the received data plus a constant.
template <class T>
struct AddConsume {
  Accumulator<T> addend;

  template <class X>
  CHORALE_FN void consume(const Ctx<X>& ctx, Vector<T> values) const {
    for (T& value : values.item) value = narrow<T>(widen(value) + addend);
    store_elements<T>(ctx.out, ctx.index, values, ctx.count);
  }
};

namespace detail {
template <ReduceOp Op, class T>
CHORALE_FN Vector<T> combined(const Vector<T>& first, const Vector<T>& second) {
  Vector<T> result;
  for (uint32_t item = 0; item < uint32_t(unit_bytes / sizeof(T)); ++item) {
    result.item[item] = narrow<T>(combine<Op>(widen(first.item[item]), widen(second.item[item])));
  }
  return result;
}
}  // namespace detail

/// Sets each element of `out` to itself combined with the received element.
template <ReduceOp Op, class T>
struct AccumulateConsume {
  template <class X>
  CHORALE_FN void consume(const Ctx<X>& ctx, const Vector<T>& values) const {
    const Vector<T> own = load_elements<T>(ctx.out, ctx.index, ctx.count);
    store_elements<T>(ctx.out, ctx.index, detail::combined<Op, T>(own, values), ctx.count);
  }
};

/// Combines the received data (the first operand) with `in` (the second). It passes the result on, and also
/// stores it if there is an `out`. In forward_tiles() this is one step of a reduction along a chain.
template <ReduceOp Op, class T>
struct AccumulateForward {
  template <class X>
  CHORALE_FN Vector<T> forward(const Ctx<X>& ctx, const Vector<T>& values) const {
    return detail::combined<Op, T>(values, load_elements<T>(ctx.in, ctx.index, ctx.count));
  }
  template <class X>
  CHORALE_FN void consume(const Ctx<X>& ctx, const Vector<T>& values) const {
    if (ctx.out) store_elements<T>(ctx.out, ctx.index, values, ctx.count);
  }
};

/// Sends the transpose of the Leg's `rows` x `cols` matrix in `in`, row by row. Without `in_strides` the
/// matrix is dense.
template <class T>
struct TransposeProduce {
  template <class X>
  CHORALE_FN Vector<T> produce(const Ctx<X>& ctx) const {
    const T* const in = static_cast<const T*>(ctx.in);
    const Strides strides = strides_or_dense(ctx.in_strides, ctx.cols);
    Vector<T> values{};
    for (uint32_t item = 0; item < ctx.count; ++item) {
      const uint64_t element = ctx.index + item, row = element % ctx.rows, col = element / ctx.rows;
      values.item[item] = in[row * strides.row + col * strides.col];
    }
    return values;
  }
};

/// Sends rows of the table in `in`. Row `row` of the message is row index[row] of the table. Each row has
/// `cols` contiguous elements. Without `in_strides` the rows follow each other.
template <class T, class I>
struct GatherProduce {
  const I* index;

  template <class X>
  CHORALE_FN Vector<T> produce(const Ctx<X>& ctx) const {
    const T* const in = static_cast<const T*>(ctx.in);
    const Strides strides = strides_or_dense(ctx.in_strides, ctx.cols);
    Vector<T> values{};
    for (uint32_t item = 0; item < ctx.count; ++item) {
      const uint64_t element = ctx.index + item, row = element / ctx.cols, col = element % ctx.cols;
      values.item[item] = in[uint64_t(index[row]) * strides.row + col];
    }
    return values;
  }
};

/// Sends elements of type From, divided by *scale, as 8-bit floats. A value that is too large becomes the
/// largest finite one, because the scale is meant to keep data in range. A NaN stays a NaN. Kernels read
/// `scale`, so on CUDA it is in memory of the device.
template <class From, class To = fp8_e4m3>
struct QuantizeFp8 {
  const float* scale;

  template <class X>
  CHORALE_FN Vector<To> produce(const Ctx<X>& ctx) const {
    const From* const in = static_cast<const From*>(ctx.in) + ctx.index;
    const float by = *scale;
    Vector<To> values{};
    for (uint32_t item = 0; item < ctx.count; ++item) {
      values.item[item] = narrow<To>(clamp_to<To>(float(widen(in[item])) / by));
    }
    return values;
  }
};

/// Stores 8-bit floats, times *scale, as elements of type To.
template <class To, class From = fp8_e4m3>
struct DequantizeFp8 {
  const float* scale;

  template <class X>
  CHORALE_FN void consume(const Ctx<X>& ctx, const Vector<From>& values) const {
    To* const out = static_cast<To*>(ctx.out) + ctx.index;
    const float by = *scale;
    for (uint32_t item = 0; item < ctx.count; ++item) out[item] = narrow<To>(widen(values.item[item]) * by);
  }
};

/// Holds 128 elements and their scale for blockwise quantisation. The scale makes the largest element the
/// largest 8-bit float. The struct travels as one element: Leg::elem is its size.
template <class F = fp8_e4m3>
struct alignas(16) Fp8Block {
  static constexpr uint32_t elements = 128;

  F item[elements];
  float scale;
};
static_assert(sizeof(Fp8Block<>) == 144);

/// Convert runs of 128 elements to Fp8Block, with one scale per run, and back. These are block hooks for
/// messages of Fp8Block, for example send<Fp8Block<>>(). A message is a whole number of blocks. If `elements`
/// ends within the last block, the rest of that block is zero.
template <class From, class F = fp8_e4m3>
struct QuantizeFp8Blocks {
  using block_hook = void;
  uint64_t elements;  ///< the number of elements in the buffer

  template <class X>
  CHORALE_FN void produce(const Ctx<X>& ctx, const Group& group, TileOut tile) const {
    const From* const in = static_cast<const From*>(ctx.in);
    for (uint64_t block = group.rank; block < tile.bytes / sizeof(Fp8Block<F>); block += group.size) {
      const uint64_t first = (ctx.index + block) * Fp8Block<F>::elements;
      Fp8Block<F>& to = reinterpret_cast<Fp8Block<F>*>(tile.data)[block];
      float largest = 0;
      for (uint32_t item = 0; item < Fp8Block<F>::elements; ++item) {
        const float value = first + item < elements ? float(widen(in[first + item])) : 0.0f;
        largest = combine<ReduceOp::max>(largest, value < 0 ? -value : value);
      }
      const float scale = largest > 0 ? largest / most() : 1.0f;
      for (uint32_t item = 0; item < Fp8Block<F>::elements; ++item) {
        const float value = first + item < elements ? float(widen(in[first + item])) : 0.0f;
        to.item[item] = narrow<F>(clamp_to<F>(value / scale));
      }
      to.scale = scale;
    }
  }

  CHORALE_FN static float most() { return std::is_same_v<F, fp8_e4m3> ? 448.0f : 57344.0f; }
};

template <class To, class F = fp8_e4m3>
struct DequantizeFp8Blocks {
  using block_hook = void;
  uint64_t elements;

  template <class X>
  CHORALE_FN void consume(const Ctx<X>& ctx, const Group& group, TileIn tile) const {
    To* const out = static_cast<To*>(ctx.out);
    const uint64_t all = tile.bytes / sizeof(Fp8Block<F>) * Fp8Block<F>::elements;
    for (uint64_t item = group.rank; item < all; item += group.size) {
      const Fp8Block<F>& from = reinterpret_cast<const Fp8Block<F>*>(tile.data)[item / Fp8Block<F>::elements];
      const uint64_t to = ctx.index * Fp8Block<F>::elements + item;
      if (to < elements) {
        out[to] = narrow<To>(widen(from.item[item % Fp8Block<F>::elements]) * from.scale);
      }
    }
  }
};

}  // namespace chorale
