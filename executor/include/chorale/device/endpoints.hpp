#pragma once
// A transfer reads from a source and writes to a sink. Each of them is plain memory, packets, a combination
// of several, or a hook. See packets.hpp for packets, reduce.hpp for sources that combine and engine.hpp for
// the loop.
//
// A source has these members:
//   waits            whether it waits for data, so that it can stop
//   at_once          CUDA: how many units a thread holds at a time, if may_take_several()
//   read<W>(turn)    CUDA: loads the units of a turn
//   gather<W>(turn)  CUDA: loads the units of a turn from several sources at once. They have the type
//                    `Loaded`, which unit_of() converts to a Unit
//   run(at), view()  CPU: gives a span of bytes
// A sink has these members:
//   write<W>(turn)   CUDA: stores the units of a turn
//   put()            CPU: stores a span of bytes
// Both have:
//   whole(bytes)     CUDA: whether all whole units of the first `bytes` bytes exist and are aligned here, so
//                    that W (Whole) may be true
//   by_line          optional: true if it moves whole LL128 lines
// `at` counts bytes from the start of the transfer. It is a multiple of 16, and of 112 for lines. The data of
// a span is padded to whole units.

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "chorale/device/group.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

constexpr uint64_t unlimited = ~uint64_t{0};

/// Says what a thread moves in one step on CUDA: n units that are `stride` units apart.
struct Turn {
  uint64_t unit;    ///< number of the first unit, counted from the start of the transfer
  uint64_t stride;  ///< distance of the units, in units
  uint32_t n;       ///< number of units
  uint32_t bytes;   ///< size of each unit; less than 16 only if n is at most 1
  // Used when lines are moved: the lines that the thread has a part in. Its unit of a line may be past the
  // end of the data, or the thread may have the flag of the line.
  uint64_t line = 0;
  uint64_t line_stride = 0;
  uint32_t lines = 0;
};

namespace detail {
/// Limits the bytes of a span on the CPU, for a source that waits or copies its data. They fit on the stack
/// of a fiber.
constexpr uint32_t span_bytes = 2048;

/// Returns how many of the first `bytes` bytes of unit `unit` are before byte `limit` of the transfer.
CHORALE_FN uint32_t bytes_within(uint64_t unit, uint32_t bytes, uint64_t limit) {
  const uint64_t at = unit * unit_bytes;
  const uint64_t left = at < limit ? limit - at : 0;
  return left < bytes ? uint32_t(left) : bytes;
}

template <class End, class = void>
constexpr bool by_line = false;
template <class End>
constexpr bool by_line<End, std::enable_if_t<End::by_line>> = true;

CHORALE_HD uint64_t padded(uint64_t bytes) { return units_of(bytes) * unit_bytes; }
}  // namespace detail

/// Uses plain memory as a source or a sink. Only the first `valid` bytes exist, and none if `data` is null.
/// After them a source reads zeros, and a sink drops the data. Any alignment works; a multiple of 16 is fast.
struct Mem {
  char* data = nullptr;
  uint64_t valid = unlimited;

  Mem() = default;
  CHORALE_HD Mem(void* data, uint64_t valid = unlimited) : data(static_cast<char*>(data)), valid(valid) {}
  /// Makes a source only. A sink made from it would write to const memory.
  CHORALE_HD Mem(const void* data, uint64_t valid = unlimited)
      : data(static_cast<char*>(const_cast<void*>(data))), valid(valid) {}

  static constexpr bool waits = false;
  static constexpr uint32_t at_once = 8;

#if defined(__CUDACC__)
  using Loaded = Unit;

  CHORALE_FN bool may_take_several() const { return true; }
  CHORALE_FN bool whole(uint64_t bytes) const {
    return data && reinterpret_cast<uintptr_t>(data) % unit_bytes == 0 &&
           valid >= bytes / unit_bytes * unit_bytes;
  }

  /// Loads the turn's units from sources at(0) .. at(n-1), n <= K. Starts all loads before it uses the first.
  template <bool Whole, uint32_t K, uint32_t N, class At>
  CHORALE_FN static Stop gather(const Group&, const Turn& turn, uint32_t n, const At& at, Unit (&to)[K][N]) {
    const char* from[K];
#pragma unroll
    for (uint32_t source = 0; source < K; ++source) from[source] = source < n ? at(source).data : nullptr;
    const auto load = [&](uint32_t source, uint32_t index) -> Unit {
      const uint64_t unit = turn.unit + index * turn.stride;
      if constexpr (Whole) return reinterpret_cast<const Unit*>(from[source])[unit];
      const uint32_t bytes = from[source] ? detail::bytes_within(unit, turn.bytes, at(source).valid) : 0;
      return load_unit(from[source] + unit * unit_bytes, bytes);
    };
    // Usually no branch is between the loads. Otherwise the elements that are not loaded are set to zero,
    // because a register that only some paths write would stay reserved through every outer loop.
    if (n == K && turn.n == N) {
#pragma unroll
      for (uint32_t item = 0; item < K * N; ++item) to[item / N][item % N] = load(item / N, item % N);
    } else {
#pragma unroll
      for (uint32_t item = 0; item < K * N; ++item) {
        to[item / N][item % N] = Unit{};
        if (item / N < n && item % N < turn.n) to[item / N][item % N] = load(item / N, item % N);
      }
    }
    return Stop::none;
  }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    Unit held[1][N];
    gather<Whole, 1, N>(
        group, turn, 1, [this](uint32_t) -> const Mem& { return *this; }, held);
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) to[index] = held[0][index];
    return Stop::none;
  }

  template <bool Whole, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      const uint64_t unit = turn.unit + index * turn.stride;
      if (index >= turn.n) continue;
      if constexpr (Whole) {
        reinterpret_cast<Unit*>(data)[unit] = from[index];
      } else if (data) {
        store_unit(data + unit * unit_bytes, from[index], detail::bytes_within(unit, turn.bytes, valid));
      }
    }
  }
#else
  /// Returns how many bytes from `at` on can be viewed in place, a multiple of 16.
  uint64_t run(uint64_t at) const { return data && at < valid ? (valid - at) / unit_bytes * unit_bytes : 0; }

  Stop view(const Group&, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    const uint64_t all = detail::padded(bytes);
    if (bytes == all && run(at) >= bytes) {
      seen = data + at;
      return Stop::none;
    }
    const uint64_t left = data && at < valid ? valid - at : 0, here = left < bytes ? left : bytes;
    if (here != 0) std::memcpy(room, data + at, here);
    std::memset(room + here, 0, all - here);
    seen = room;
    return Stop::none;
  }

  void put(uint64_t at, uint64_t bytes, const char* from) const {
    const uint64_t left = data && at < valid ? valid - at : 0, here = left < bytes ? left : bytes;
    if (here != 0 && data + at != from) std::memmove(data + at, from, here);
  }
#endif
};

#if defined(__CUDACC__)
namespace detail {
/// Writes to sinks at(0) .. at(n-1). It looks up their addresses before the first store, because a load after
/// a store would wait for it.
template <bool Whole, uint32_t N, class At>
CHORALE_FN void write_all(const Turn& turn, uint32_t n, const At& at, const Unit (&from)[N]) {
  constexpr uint32_t ahead = 8;
  using Sink = std::decay_t<decltype(at(0))>;
  for (uint32_t first = 0; first < n; first += ahead) {
    Sink sinks[ahead];
#pragma unroll
    for (uint32_t sink = 0; sink < ahead; ++sink) {
      sinks[sink] = at(first + sink < n ? first + sink : n - 1);
    }
#pragma unroll
    for (uint32_t sink = 0; sink < ahead; ++sink) {
      if (first + sink < n) sinks[sink].template write<Whole, N>(turn, from);
    }
  }
}
}  // namespace detail
#endif

/// Writes to all of n sinks of one type, in order. The array must outlive the transfer.
template <class S>
struct Many {
  static constexpr bool by_line = detail::by_line<S>;

  const S* sinks = nullptr;
  uint32_t n = 0;

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const {
    bool yes = true;
    for (uint32_t sink = 0; sink < n; ++sink) yes &= sinks[sink].whole(bytes);
    return yes;
  }

  template <bool Whole, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
    detail::write_all<Whole, N>(
        turn, n, [this](uint32_t sink) -> const S& { return sinks[sink]; }, from);
  }
#else
  void put(uint64_t at, uint64_t bytes, const char* from) const {
    for (uint32_t sink = 0; sink < n; ++sink) sinks[sink].put(at, bytes, from);
  }
#endif
};

/// Writes to all of at(0) .. at(n-1), in order. It calls at() for each of them many times.
template <class At>
struct ManyAt {
  using Sink = std::decay_t<decltype(std::declval<const At&>()(0u))>;
  static constexpr bool by_line = detail::by_line<Sink>;

  At at;
  uint32_t n = 0;

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const {
    bool yes = true;
    for (uint32_t sink = 0; sink < n; ++sink) yes &= at(sink).whole(bytes);
    return yes;
  }

  template <bool Whole, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
    detail::write_all<Whole, N>(turn, n, at, from);
  }
#else
  void put(uint64_t place, uint64_t bytes, const char* from) const {
    for (uint32_t sink = 0; sink < n; ++sink) at(sink).put(place, bytes, from);
  }
#endif
};

namespace detail {
/// Returns the same place in the memory of each member of a switch channel, by rank.
struct AtMembers {
  char* const* members = nullptr;
  uint64_t offset = 0;  ///< offset in each member's memory, in bytes
  uint64_t valid = unlimited;

  CHORALE_FN Mem operator()(uint32_t rank) const { return {members[rank] + offset, valid}; }
};
}  // namespace detail

/// Writes to the same place in the memory of all members of a switch channel, by plain stores.
struct MultiStore {
  char* const* members = nullptr;  ///< by rank
  uint32_t n = 0;
  uint64_t offset = 0;  ///< offset in each member's memory, in bytes
  uint64_t valid = unlimited;

  CHORALE_FN ManyAt<detail::AtMembers> all() const { return {{members, offset, valid}, n}; }
  CHORALE_FN Mem member(uint32_t rank) const { return all().at(rank); }

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const { return all().whole(bytes); }

  template <bool Whole, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
    all().template write<Whole, N>(turn, from);
  }
#else
  void put(uint64_t at, uint64_t bytes, const char* from) const { all().put(at, bytes, from); }
#endif
};

/// Writes to two sinks.
template <class A, class B>
struct Tee {
  static constexpr bool by_line = detail::by_line<A> || detail::by_line<B>;

  A a;
  B b;

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const { return a.whole(bytes) && b.whole(bytes); }

  template <bool Whole, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
    a.template write<Whole, N>(turn, from);
    b.template write<Whole, N>(turn, from);
  }
#else
  void put(uint64_t at, uint64_t bytes, const char* from) const {
    a.put(at, bytes, from);
    b.put(at, bytes, from);
  }
#endif
};
template <class A, class B>
Tee(A, B) -> Tee<A, B>;

}  // namespace chorale
