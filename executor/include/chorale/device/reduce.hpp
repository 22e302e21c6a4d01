#pragma once
// Sources that combine: element by element, in the order in which the sources are given, in the accumulator type, rounded
// once. The order is part of a plan's meaning, so nothing here reorders: results are the same bits in every run, for every
// group size and on both backends.

#include <cstdint>
#include <cstring>

#include "chorale/device/endpoints.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/numeric.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

namespace detail {

#if defined(__CUDACC__)
/// One unit's elements while they are combined.
template <ReduceOp Op, class T>
struct Sum {
  static constexpr int n = int(unit_bytes / sizeof(T));
  Accumulator<T> values[n];

  CHORALE_FN void start(const Unit& unit) {
    const Pack<T, n> elements = elements_of<T>(unit);
#pragma unroll
    for (int item = 0; item < n; ++item) values[item] = widen(elements.item[item]);
  }

  CHORALE_FN void add(const Unit& unit) {
    const Pack<T, n> elements = elements_of<T>(unit);
#pragma unroll
    for (int item = 0; item < n; ++item) values[item] = combine<Op>(values[item], widen(elements.item[item]));
  }

  CHORALE_FN Unit finish(uint32_t average_over) {
    Pack<T, n> elements;
#pragma unroll
    for (int item = 0; item < n; ++item) {
      if (Op == ReduceOp::avg && average_over > 1) values[item] = finish_avg<T>(values[item], average_over);
      elements.item[item] = narrow<T>(values[item]);
    }
    return unit_of<T>(elements);
  }
};
#else
/// Calls f(first) for the starts of runs of 16 elements of 0 .. n-1, then tail(element) for the rest. Loops of a constant
/// length without dependences become vector code at every optimisation level that has any.
template <class F>
inline void each_run(uint32_t n, F&& f) {
  constexpr uint32_t run = 16;
  uint32_t first = 0;
  for (; first + run <= n; first += run) f(first, TypeTag<std::integral_constant<uint32_t, run>>{});
  for (; first < n; ++first) f(first, TypeTag<std::integral_constant<uint32_t, 1>>{});
}

/// One span's elements while they are combined. Bytes of elements may be at any address.
template <ReduceOp Op, class T>
struct Sum {
  using A = Accumulator<T>;
  alignas(64) A values[span_bytes / sizeof(T)];

  static T load(const char* from, uint32_t element) {
    T value;
    std::memcpy(&value, from + element * sizeof(T), sizeof(T));
    return value;
  }

  void start(const char* __restrict from, uint32_t n) { start(values, from, n); }
  void add(const char* __restrict from, uint32_t n) { add(values, from, n); }

  void finish(char* __restrict to, uint32_t n, uint32_t average_over) {
    if (Op == ReduceOp::avg && average_over > 1) {
      for (uint32_t element = 0; element < n; ++element) {
        values[element] = finish_avg<T>(values[element], average_over);
      }
    }
    finish(to, values, n);
  }

 private:
  static void start(A* __restrict to, const char* __restrict from, uint32_t n) {
    each_run(n, [=](uint32_t first, auto length) {
      for (uint32_t item = 0; item < decltype(length)::type::value; ++item) to[first + item] = widen(load(from, first + item));
    });
  }

  static void add(A* __restrict to, const char* __restrict from, uint32_t n) {
    each_run(n, [=](uint32_t first, auto length) {
      for (uint32_t item = 0; item < decltype(length)::type::value; ++item) {
        to[first + item] = combine<Op>(to[first + item], widen(load(from, first + item)));
      }
    });
  }

  static void finish(char* __restrict to, const A* __restrict from, uint32_t n) {
    each_run(n, [=](uint32_t first, auto length) {
      for (uint32_t item = 0; item < decltype(length)::type::value; ++item) {
        const T value = narrow<T>(from[first + item]);
        std::memcpy(to + (first + item) * sizeof(T), &value, sizeof(T));
      }
    });
  }
};
#endif

}  // namespace detail

/// Source: first, then others[0] .. others[n-1], combined. The array outlives the transfer. `average_over` > 1, with avg
/// only: the sum is divided by it before it is rounded; leave it 0 where more addends follow in a later step.
template <ReduceOp Op, class T, class First = Mem, class Other = Mem>
struct Reduced {
  First first;
  const Other* others = nullptr;
  uint32_t n = 0;
  uint32_t average_over = 0;

  static constexpr bool waits = First::waits || Other::waits;
  static constexpr uint32_t at_once = waits ? 1 : 2;

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const {
    bool yes = first.whole(bytes);
    for (uint32_t other = 0; other < n; ++other) yes &= others[other].whole(bytes);
    return yes;
  }

  template <bool Whole>
  CHORALE_FN Stop read(const Group& group, uint64_t unit, uint32_t bytes, Unit& to) const {
    detail::Sum<Op, T> sum;
    Stop stop = first.template read<Whole>(group, unit, bytes, to);
    if (stop != Stop::none) return stop;
    sum.start(to);
#pragma unroll(Whole && !waits ? 4 : 1)
    for (uint32_t other = 0; other < n; ++other) {
      stop = others[other].template read<Whole>(group, unit, bytes, to);
      if (stop != Stop::none) return stop;
      sum.add(to);
    }
    to = sum.finish(average_over);
    return Stop::none;
  }
#else
  uint64_t run(uint64_t) const { return 0; }

  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    detail::Sum<Op, T> sum;
    const uint32_t elements = uint32_t(detail::padded(bytes) / sizeof(T));
    const char* from;
    Stop stop = first.view(group, at, bytes, room, from);
    if (stop != Stop::none) return stop;
    sum.start(from, elements);
    for (uint32_t other = 0; other < n; ++other) {
      stop = others[other].view(group, at, bytes, room, from);
      if (stop != Stop::none) return stop;
      sum.add(from, elements);
    }
    sum.finish(room, elements, average_over);
    seen = room;
    return Stop::none;
  }
#endif
};

/// Source: the same place in the memory of all members of a switch channel, combined in rank order by plain loads. n > 0.
template <ReduceOp Op, class T>
struct Multi {
  char* const* members = nullptr;  ///< by rank
  uint32_t n = 0;
  uint64_t offset = 0;  ///< bytes into each member
  uint64_t valid = unlimited;
  uint32_t average_over = 0;  ///< as in Reduced

  static constexpr bool waits = false;
  static constexpr uint32_t at_once = 2;

  CHORALE_FN Mem member(uint32_t rank) const { return {members[rank] + offset, valid}; }

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const {
    bool yes = true;
    for (uint32_t rank = 0; rank < n; ++rank) yes &= member(rank).whole(bytes);
    return yes;
  }

  template <bool Whole>
  CHORALE_FN Stop read(const Group& group, uint64_t unit, uint32_t bytes, Unit& to) const {
    detail::Sum<Op, T> sum;
    member(0).template read<Whole>(group, unit, bytes, to);
    sum.start(to);
#pragma unroll(Whole ? 4 : 1)
    for (uint32_t rank = 1; rank < n; ++rank) {
      member(rank).template read<Whole>(group, unit, bytes, to);
      sum.add(to);
    }
    to = sum.finish(average_over);
    return Stop::none;
  }
#else
  uint64_t run(uint64_t) const { return 0; }

  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    detail::Sum<Op, T> sum;
    const uint32_t elements = uint32_t(detail::padded(bytes) / sizeof(T));
    const char* from;
    member(0).view(group, at, bytes, room, from);
    sum.start(from, elements);
    for (uint32_t rank = 1; rank < n; ++rank) {
      member(rank).view(group, at, bytes, room, from);
      sum.add(from, elements);
    }
    sum.finish(room, elements, average_over);
    seen = room;
    return Stop::none;
  }
#endif
};

}  // namespace chorale
