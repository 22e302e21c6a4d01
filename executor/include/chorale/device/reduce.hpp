#pragma once
// These sources combine other sources element by element, in the given order. They combine in the accumulator
// type and round once. The order is part of a plan's meaning, so this code never reorders. Results have the
// same bits in every run, for every group size and on both backends.

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "chorale/device/endpoints.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/lines.hpp"
#include "chorale/device/numeric.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

namespace detail {

#if defined(__CUDACC__)
/// Holds one unit's elements while they are combined.
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
/// Does combine() in each lane.
template <ReduceOp Op, class A>
inline Lanes<A> combine_lanes(Lanes<A> sum, Lanes<A> next) {
  static_assert(is_sum<Op> || Op == ReduceOp::min || Op == ReduceOp::max || Op == ReduceOp::prod);
  if constexpr (Op == ReduceOp::min || Op == ReduceOp::max) {
    constexpr bool least = Op == ReduceOp::min;
    const auto nearer = least ? sum < next : sum > next;
    if constexpr (std::is_integral_v<A>) {
      return nearer ? sum : next;
    } else {
      using Mask = decltype(sum < next);
      const Mask negative = (Mask)sum < 0, outer = least ? negative : ~negative;
      return (nearer | (sum != sum) | ((sum == next) & outer)) ? sum : next;
    }
  } else if constexpr (std::is_integral_v<A>) {
    using U = Lanes<std::make_unsigned_t<A> >;
    return is_sum<Op> ? Lanes<A>(U(sum) + U(next)) : Lanes<A>(U(sum) * U(next));
  } else {
    return is_sum<Op> ? sum + next : sum * next;
  }
}

// lower_half() and upper_half() zero-extend half of the lanes. join() keeps the lower half of each lane of
// two vectors. Lanes are little-endian.
inline Lanes<uint32_t> lower_half(Lanes<uint16_t> v) {
  return (Lanes<uint32_t>)__builtin_shufflevector(v, v ^ v, 0, 8, 1, 9, 2, 10, 3, 11);
}
inline Lanes<uint32_t> upper_half(Lanes<uint16_t> v) {
  return (Lanes<uint32_t>)__builtin_shufflevector(v, v ^ v, 4, 12, 5, 13, 6, 14, 7, 15);
}
inline Lanes<uint16_t> lower_half(Lanes<uint8_t> v) {
  return (Lanes<uint16_t>)__builtin_shufflevector(v, v ^ v, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22,
                                                  7, 23);
}
inline Lanes<uint16_t> upper_half(Lanes<uint8_t> v) {
  return (Lanes<uint16_t>)__builtin_shufflevector(v, v ^ v, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
                                                  30, 15, 31);
}
inline Lanes<uint16_t> join(Lanes<uint32_t> a, Lanes<uint32_t> b) {
  return __builtin_shufflevector((Lanes<uint16_t>)a, (Lanes<uint16_t>)b, 0, 2, 4, 6, 8, 10, 12, 14);
}
inline Lanes<uint8_t> join(Lanes<uint16_t> a, Lanes<uint16_t> b) {
  return __builtin_shufflevector((Lanes<uint8_t>)a, (Lanes<uint8_t>)b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20,
                                 22, 24, 26, 28, 30);
}

/// Holds one span's elements while they are combined: whole units, at any address. The lanes are spelled out.
/// Only some compilers turn loops into vector code, at some optimisation levels, and none does for narrow
/// floats.
template <ReduceOp Op, class T>
struct Sum {
  using A = Accumulator<T>;
  static constexpr uint32_t per_unit = unit_bytes / sizeof(T), lanes = unit_bytes / sizeof(A);
  alignas(64) A values[span_bytes / sizeof(T)];

  /// Holds a unit's elements in the accumulator type.
  struct Wide {
    Lanes<A> part[per_unit / lanes];
  };

  static Wide load(const char* from) {
    Wide wide;
    if constexpr (is_narrow_float<T>) {
      Lanes<decltype(T::bits)> packed;
      std::memcpy(&packed, from, unit_bytes);
      if constexpr (sizeof(T) == 2) {
        wide.part[0] = bits_float(widen_bits<T>(lower_half(packed)));
        wide.part[1] = bits_float(widen_bits<T>(upper_half(packed)));
      } else {
        const Lanes<uint16_t> lower = lower_half(packed), upper = upper_half(packed);
        wide.part[0] = bits_float(widen_bits<T>(lower_half(lower)));
        wide.part[1] = bits_float(widen_bits<T>(upper_half(lower)));
        wide.part[2] = bits_float(widen_bits<T>(lower_half(upper)));
        wide.part[3] = bits_float(widen_bits<T>(upper_half(upper)));
      }
    } else {
      std::memcpy(&wide, from, unit_bytes);
    }
    return wide;
  }

  static void store(char* to, const Wide& wide) {
    if constexpr (is_narrow_float<T>) {
      const auto bits = [&](uint32_t part) { return narrow_bits<T>(float_bits(wide.part[part])); };
      Lanes<decltype(T::bits)> packed;
      if constexpr (sizeof(T) == 2) {
        packed = join(bits(0), bits(1));
      } else {
        packed = join(join(bits(0), bits(1)), join(bits(2), bits(3)));
      }
      std::memcpy(to, &packed, unit_bytes);
    } else {
      std::memcpy(to, &wide, unit_bytes);
    }
  }

  void start(const char* from, uint32_t n) {
    for (uint32_t element = 0; element < n; element += per_unit) {
      const Wide wide = load(from + element * sizeof(T));
      std::memcpy(values + element, &wide, sizeof wide);
    }
  }

  void add(const char* from, uint32_t n) {
    for (uint32_t element = 0; element < n; element += per_unit) {
      const Wide next = load(from + element * sizeof(T));
      Wide sum;
      std::memcpy(&sum, values + element, sizeof sum);
      for (uint32_t part = 0; part < per_unit / lanes; ++part) {
        sum.part[part] = combine_lanes<Op, A>(sum.part[part], next.part[part]);
      }
      std::memcpy(values + element, &sum, sizeof sum);
    }
  }

  void finish(char* to, uint32_t n, uint32_t average_over) {
    if (Op == ReduceOp::avg && average_over > 1) {
      for (uint32_t element = 0; element < n; ++element) {
        values[element] = finish_avg<T>(values[element], average_over);
      }
    }
    for (uint32_t element = 0; element < n; element += per_unit) {
      Wide wide;
      std::memcpy(&wide, values + element, sizeof wide);
      store(to + element * sizeof(T), wide);
    }
  }
};
#endif

#if defined(__CUDACC__)
/// Gives the number of sources whose units are loaded together before the first is used. With 7, the peers of
/// a node with eight GPUs cost one round trip. If a thread has several units at a time (N > 1), the number is
/// smaller, so that about as many loads are in flight. It is smaller for one-byte elements too, because their
/// sums take four times their size in registers.
template <class T, uint32_t N>
constexpr uint32_t together = N > 1 ? 3 : (sizeof(T) > 1 ? 7 : 4);

/// Sets to = first + at(0) + .. + at(n-1).
template <ReduceOp Op, class T, bool Whole, uint32_t N, class First, class At>
CHORALE_FN Stop combine_all(const Group& group, const Turn& turn, const First& first, uint32_t n,
                            const At& at, uint32_t average_over, Unit (&to)[N]) {
  using Other = std::decay_t<decltype(at(0))>;
  constexpr uint32_t K = Whole || Other::waits ? together<T, N> : 1;  // the slow path is kept small instead
  Stop stop = first.template read<Whole, N>(group, turn, to);
  // The lanes of a warp must continue together.
  if constexpr (First::waits && by_line<Other>) stop = agree_in_warp(stop);
  if (stop != Stop::none) return stop;
  typename Other::Loaded held[K][N];
  const uint32_t now = n < K ? n : K;
  stop = Other::template gather<Whole, K, N>(group, turn, now, at, held);
  if (stop != Stop::none) return stop;
  Sum<Op, T> sums[N];
#pragma unroll
  for (uint32_t index = 0; index < N; ++index) {
    sums[index].start(to[index]);
#pragma unroll
    for (uint32_t source = 0; source < K; ++source) {
      if (source < now) sums[index].add(unit_of(held[source][index]));
    }
  }
  // The others are added one by one, because many units and sums together would take too many registers.
#pragma unroll 1
  for (uint32_t source = K; source < n; ++source) {
    typename Other::Loaded next[1][N];
    stop = Other::template gather<Whole, 1, N>(
        group, turn, 1, [&at, source](uint32_t) -> decltype(auto) { return at(source); }, next);
    if (stop != Stop::none) return stop;
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) sums[index].add(unit_of(next[0][index]));
  }
#pragma unroll
  for (uint32_t index = 0; index < N; ++index) to[index] = sums[index].finish(average_over);
  return Stop::none;
}

/// Sets to = at(0) + .. + at(n-1), for sources that wait. It takes K of them at a time, one unit per thread.
template <ReduceOp Op, class T, bool Whole, uint32_t K, class At>
CHORALE_FN Stop combine_in_turns(const Group& group, const Turn& turn, uint32_t n, const At& at,
                                 uint32_t average_over, Unit& to) {
  using Source = std::decay_t<decltype(at(0))>;
  Sum<Op, T> sum;
#pragma unroll 1
  for (uint32_t first = 0; first < n; first += K) {
    typename Source::Loaded held[K][1];
    const uint32_t now = n - first < K ? n - first : K;
    const Stop stop = Source::template gather<Whole, K, 1>(
        group, turn, now, [&at, first](uint32_t index) { return at(first + index); }, held);
    if (stop != Stop::none) return stop;
#pragma unroll
    for (uint32_t index = 0; index < K; ++index) {
      if (index == 0 && first == 0) {
        sum.start(unit_of(held[0][0]));
      } else if (index < now) {
        sum.add(unit_of(held[index][0]));
      }
    }
  }
  to = sum.finish(average_over);
  return Stop::none;
}
#endif

}  // namespace detail

/// Combines first, others[0], .. others[n-1], in this order. The array must outlive the transfer. If the
/// others are packets, they must have the same flag and the same deadline. For avg, `average_over` is the
/// number by which the sum is divided before it is rounded. Leave it 0 if a later step adds more operands.
template <ReduceOp Op, class T, class First = Mem, class Other = Mem>
struct Reduced {
  First first;
  const Other* others = nullptr;
  uint32_t n = 0;
  uint32_t average_over = 0;

  static constexpr bool waits = First::waits || Other::waits;
  static constexpr bool by_line = detail::by_line<First> || detail::by_line<Other>;
  static constexpr uint32_t at_once = waits || sizeof(T) == 1 ? 1 : 2;

#if defined(__CUDACC__)
  CHORALE_FN bool may_take_several() const { return n <= detail::together<T, at_once>; }

  CHORALE_FN bool whole(uint64_t bytes) const {
    bool yes = first.whole(bytes);
    for (uint32_t other = 0; other < n; ++other) yes &= others[other].whole(bytes);
    return yes;
  }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    return detail::combine_all<Op, T, Whole, N>(
        group, turn, first, n, [this](uint32_t other) -> const Other& { return others[other]; }, average_over,
        to);
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

/// Combines at(0) .. at(n-1), n > 0, in this order. It calls at() for each of them many times. If the sources
/// are packets, they must share one deadline, and one flag unless they declare own_flags. `average_over` is
/// the same as in Reduced.
template <ReduceOp Op, class T, class At>
struct ReducedAt {
  using Source = std::decay_t<decltype(std::declval<const At&>()(0u))>;

  At at;
  uint32_t n = 0;
  uint32_t average_over = 0;

  static constexpr bool waits = Source::waits;
  static constexpr bool by_line = detail::by_line<Source>;
  static constexpr uint32_t at_once = waits || sizeof(T) == 1 ? 1 : 2;

#if defined(__CUDACC__)
  CHORALE_FN bool may_take_several() const { return n - 1 <= detail::together<T, at_once>; }

  CHORALE_FN bool whole(uint64_t bytes) const {
    bool yes = true;
    for (uint32_t source = 0; source < n; ++source) yes &= at(source).whole(bytes);
    return yes;
  }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    if constexpr (waits) {
      static_assert(N == 1, "this source moves one unit at a time");
      return detail::combine_in_turns<Op, T, Whole, 4>(group, turn, n, at, average_over, to[0]);
    } else {
      return detail::combine_all<Op, T, Whole, N>(
          group, turn, at(0), n - 1, [this](uint32_t other) { return at(other + 1); }, average_over, to);
    }
  }
#else
  uint64_t run(uint64_t) const { return 0; }

  Stop view(const Group& group, uint64_t place, uint64_t bytes, char* room, const char*& seen) const {
    detail::Sum<Op, T> sum;
    const uint32_t elements = uint32_t(detail::padded(bytes) / sizeof(T));
    for (uint32_t source = 0; source < n; ++source) {
      const char* from;
      const Stop stop = at(source).view(group, place, bytes, room, from);
      if (stop != Stop::none) return stop;
      if (source == 0) {
        sum.start(from, elements);
      } else {
        sum.add(from, elements);
      }
    }
    sum.finish(room, elements, average_over);
    seen = room;
    return Stop::none;
  }
#endif
};

/// Combines the same place in the memory of all members of a switch channel, in rank order, by plain loads.
/// There is at least one member.
template <ReduceOp Op, class T>
struct Multi {
  char* const* members = nullptr;  ///< by rank
  uint32_t n = 0;
  uint64_t offset = 0;  ///< offset in each member's memory, in bytes
  uint64_t valid = unlimited;
  uint32_t average_over = 0;  ///< same as in Reduced

  using All = ReducedAt<Op, T, detail::AtMembers>;
  static constexpr bool waits = All::waits;
  static constexpr uint32_t at_once = All::at_once;

  CHORALE_FN All all() const { return {{members, offset, valid}, n, average_over}; }

#if defined(__CUDACC__)
  CHORALE_FN bool may_take_several() const { return all().may_take_several(); }
  CHORALE_FN bool whole(uint64_t bytes) const { return all().whole(bytes); }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    return all().template read<Whole, N>(group, turn, to);
  }
#else
  uint64_t run(uint64_t at) const { return all().run(at); }

  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    return all().view(group, at, bytes, room, seen);
  }
#endif
};

}  // namespace chorale
