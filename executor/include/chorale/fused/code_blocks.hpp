#pragma once
// These functions encode and decode blocks of elements, 16 codes at a time. The kernels of quantised.hpp call
// them.

#include <cstdint>

#include "chorale/device.hpp"
#include "chorale/fused/codes.hpp"
#include "chorale/fused/rows.hpp"

namespace chorale::fused {
namespace detail {

constexpr uint32_t per_code_unit = 16;  ///< elements whose codes are a unit

/// Describes codes and scales in a rank's window, or in a message of packets.
struct CodeLayout {
  uint64_t codes_at, scales_at;  ///< offsets in bytes
};

/// Loads the T of 16 codes, and gives them as floats. After the last element of the message come zeros.
template <class T>
struct Elements {
  static constexpr uint32_t n = unit_bytes / sizeof(T), units = sizeof(T);
  struct Held {
    Unit unit[units];
  };

  const T* data;
  uint64_t count;

  CHORALE_FN uint32_t count_at(uint64_t first) const {
    return first + n <= count ? n : first < count ? uint32_t(count - first) : 0;
  }
  CHORALE_FN void load(uint64_t unit, Held& to) const {
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t part = 0; part < units; ++part) {
      const uint64_t first = unit * per_code_unit + part * n;
      const uint32_t valid = count_at(first);
      to.unit[part] = Unit{};
      if (valid != 0) to.unit[part] = unit_of<T>(load_elements<T>(data, first, valid));
    }
  }
  CHORALE_FN void values(uint64_t, const Held& held, float (&to)[per_code_unit]) const {
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t part = 0; part < units; ++part) {
      const Vector<T> elements = elements_of<T>(held.unit[part]);
      for (uint32_t item = 0; item < n; ++item) to[part * n + item] = widen(elements.item[item]);
    }
  }
  CHORALE_FN static void store(T* out, uint64_t count, uint64_t unit, const float (&from)[per_code_unit]) {
    const Elements of{out, count};
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t part = 0; part < units; ++part) {
      const uint64_t first = unit * per_code_unit + part * n;
      const uint32_t valid = of.count_at(first);
      Vector<T> elements;
      for (uint32_t item = 0; item < n; ++item) elements.item[item] = narrow<T>(from[part * n + item]);
      if (valid != 0) store_elements<T>(out, first, elements, valid);
    }
  }
};

template <class Q>
CHORALE_FN Unit encoded(const float (&values)[per_code_unit], float scale) {
  const float inverse = 1.0f / scale;
  Pack<Q, int(per_code_unit)> codes;
  for (uint32_t item = 0; item < per_code_unit; ++item) {
    codes.item[item] = code_of<Q>(product(values[item], inverse));
  }
  return unit_of<Q>(codes);
}

/// Sets `to` to the decoded values, or adds them to it.
template <class Q>
CHORALE_FN void decode(const Unit& unit, float scale, bool adds, float (&to)[per_code_unit]) {
  const Pack<Q, int(per_code_unit)> codes = elements_of<Q>(unit);
  for (uint32_t item = 0; item < per_code_unit; ++item) {
    const float value = product(value_of_code(codes.item[item]), scale);
    to[item] = adds ? sum(to[item], value) : value;
  }
}

CHORALE_FN float largest_of_sixteen(float largest, const float (&values)[per_code_unit]) {
  for (uint32_t item = 0; item < per_code_unit; ++item) {
    largest = chorale::detail::Larger{}(largest, finite_magnitude(values[item]));
  }
  return largest;
}

/// Encodes blocks `first` .. `first` + `n` - 1, of 1 << shift units of codes each. put(unit, codes, scale,
/// begins) takes a unit's codes; `begins` is true for one unit of each block. It returns a Stop. A thread
/// holds U units at a time, so that their loads are in flight together. CUDA: the group is whole warps.
template <class Q, uint32_t U, class Source, class Put>
CHORALE_FN Stop encode_blocks(const Group& group, uint32_t shift, uint64_t first, uint64_t n,
                              const Source& source, const Put& put) {
  Stop stop = Stop::none;
  const uint32_t lanes = 1u << shift;
#if defined(__CUDACC__)
  // Neighbouring lanes have the units of a block.
  const uint64_t end = (first + n) << shift;
#pragma unroll 1
  for (uint64_t at = first << shift; at < end; at += U * group.size) {
    typename Source::Held held[U];
#pragma unroll
    for (uint32_t index = 0; index < U; ++index) {
      const uint64_t unit = at + index * group.size + group.rank;
      held[index] = typename Source::Held{};
      if (unit < end) source.load(unit, held[index]);
    }
#pragma unroll
    for (uint32_t index = 0; index < U; ++index) {
      const uint64_t unit = at + index * group.size + group.rank;
      float values[per_code_unit] = {};
      if (unit < end) source.values(unit, held[index], values);
      const float largest =
          chorale::detail::over_lanes(largest_of_sixteen(0.0f, values), lanes, chorale::detail::Larger{});
      const float scale = scale_of<Q>(largest);
      if (unit < end && stop == Stop::none) {
        stop = put(unit, encoded<Q>(values, scale), scale, (group.rank & (lanes - 1)) == 0);
      }
    }
  }
#else
  // A thread has all units of a block.
  constexpr uint32_t most_lanes = 32;
  for (uint64_t block = first + group.rank; block < first + n && stop == Stop::none; block += group.size) {
    float values[most_lanes][per_code_unit];
    float largest = 0;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      typename Source::Held held;
      source.load(block * lanes + lane, held);
      source.values(block * lanes + lane, held, values[lane]);
      largest = largest_of_sixteen(largest, values[lane]);
    }
    const float scale = scale_of<Q>(largest);
    for (uint32_t lane = 0; lane < lanes && stop == Stop::none; ++lane) {
      stop = put(block * lanes + lane, encoded<Q>(values[lane], scale), scale, lane == 0);
    }
  }
#endif
  return stop;
}

/// Gives the sums of all ranks' elements, in rank order, from the codes in their windows.
template <class Q>
struct SumOfCodes {
  static constexpr uint32_t together = 4;  ///< ranks whose codes are loaded together
  struct Held {
    Unit codes[together];
    float scales[together];
  };

  const WindowView& window;
  CodeLayout at;
  uint32_t shift;

  CHORALE_FN void load_from(uint32_t first, uint64_t unit, Held& to) const {
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t index = 0; index < together; ++index) {
      if (first + index >= uint32_t(window.ranks)) continue;
      const char* const base = window.base[first + index];
      to.codes[index] = load_whole(base + at.codes_at + unit * unit_bytes);
      to.scales[index] = reinterpret_cast<const float*>(base + at.scales_at)[unit >> shift];
    }
  }
  CHORALE_FN void add(uint32_t first, const Held& held, float (&to)[per_code_unit]) const {
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t index = 0; index < together; ++index) {
      if (first + index < uint32_t(window.ranks))
        decode<Q>(held.codes[index], held.scales[index], first + index != 0, to);
    }
  }

  CHORALE_FN void load(uint64_t unit, Held& to) const { load_from(0, unit, to); }
  CHORALE_FN void values(uint64_t unit, const Held& held, float (&to)[per_code_unit]) const {
    add(0, held, to);
#if defined(__CUDACC__)
#pragma unroll 1
#endif
    for (uint32_t first = together; first < uint32_t(window.ranks); first += together) {
      Held more{};
      load_from(first, unit, more);
      add(first, more, to);
    }
  }
};

/// Gives a unit's codes and scale to the windows of `ranks` ranks, from rank `first` on, which is at most the
/// number of all ranks.
CHORALE_FN void store_codes(const WindowView& window, const CodeLayout& at, int32_t first, int32_t ranks,
                            uint64_t unit, const Unit& codes, uint64_t block, float scale, bool begins) {
  constexpr int32_t ahead = 8;  // addresses are looked up before the first store, which a load would wait for
  for (int32_t step = 0; step < ranks; step += ahead) {
    char* to[ahead];
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (int32_t index = 0; index < ahead; ++index) {
      const int32_t rank = first + (step + index < ranks ? step + index : 0);
      to[index] = window.base[rank < window.ranks ? rank : rank - window.ranks];
    }
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (int32_t index = 0; index < ahead; ++index) {
      if (step + index >= ranks) continue;
      store_whole(to[index] + at.codes_at + unit * unit_bytes, codes);
      if (begins) reinterpret_cast<float*>(to[index] + at.scales_at)[block] = scale;
    }
  }
}

/// Decodes blocks from a rank's window into `out`.
template <class T, class Q>
CHORALE_FN void decode_blocks(const Group& group, const char* base, const CodeLayout& at, uint32_t shift,
                              uint64_t first, uint64_t n, T* out, uint64_t elements) {
  constexpr uint32_t ahead = 4;
  const uint64_t end = (first + n) << shift;
  const float* const scales = reinterpret_cast<const float*>(base + at.scales_at);
#if defined(__CUDACC__)
#pragma unroll 1
#endif
  for (uint64_t unit = (first << shift) + group.rank; unit < end; unit += ahead * group.size) {
    Unit codes[ahead];
    float scale[ahead];
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t index = 0; index < ahead; ++index) {
      const uint64_t here = unit + index * group.size;
      codes[index] = Unit{};
      scale[index] = 0;
      if (here >= end) continue;
      codes[index] = load_whole(base + at.codes_at + here * unit_bytes);
      scale[index] = scales[here >> shift];
    }
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t index = 0; index < ahead; ++index) {
      const uint64_t here = unit + index * group.size;
      if (here >= end) continue;
      float values[per_code_unit];
      decode<Q>(codes[index], scale[index], false, values);
      Elements<T>::store(out, elements, here, values);
    }
  }
}

/// Is a range of blocks.
struct Blocks {
  uint64_t first, n;
};

}  // namespace detail

}  // namespace chorale::fused
