#pragma once
// Where a transfer reads from and writes to: memory, packets, several sinks at once. See engine.hpp for the
// loop and reduce.hpp for the sources that combine.
//
// A SOURCE has                                         A SINK has
//   waits, at_once   whether it can stop; CUDA: units a thread holds at once
//   whole(bytes)     CUDA: all whole units within `bytes` are whole and aligned here too
//   read<W>(...)     CUDA: one unit                      write<W>(...)   CUDA: one unit
//   run(at), view()  CPU: a span of bytes                put()           CPU: a span of bytes
// `at` counts bytes from the start of the transfer and is a multiple of 16. A span's data is padded to whole
// units.

#include <cstdint>
#include <cstring>

#include "chorale/device/deadline.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/packet.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

constexpr uint64_t unlimited = ~uint64_t{0};

namespace detail {
/// CPU: bytes that a source which must stage or wait hands on at a time. Small enough for a fiber's stack.
constexpr uint32_t span_bytes = 2048;

/// CUDA: the bytes of unit `unit` that lie before `limit`.
CHORALE_FN uint32_t bytes_within(uint64_t unit, uint32_t bytes, uint64_t limit) {
  const uint64_t at = unit * unit_bytes;
  const uint64_t left = at < limit ? limit - at : 0;
  return left < bytes ? uint32_t(left) : bytes;
}

CHORALE_HD uint64_t padded(uint64_t bytes) { return units_of(bytes) * unit_bytes; }
}  // namespace detail

/// Plain memory, source or sink. As a source it gives zeros, and as a sink it drops what comes, from `valid`
/// bytes on and when `data` is null. Any alignment; a multiple of 16 is fast.
struct Mem {
  char* data = nullptr;
  uint64_t valid = unlimited;

  Mem() = default;
  CHORALE_HD Mem(void* data, uint64_t valid = unlimited) : data(static_cast<char*>(data)), valid(valid) {}
  /// A source only: a sink made of it would write what is const.
  CHORALE_HD Mem(const void* data, uint64_t valid = unlimited)
      : data(static_cast<char*>(const_cast<void*>(data))), valid(valid) {}

  static constexpr bool waits = false;
  static constexpr uint32_t at_once = 4;

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const {
    return data && reinterpret_cast<uintptr_t>(data) % unit_bytes == 0 &&
           valid >= bytes / unit_bytes * unit_bytes;
  }

  template <bool Whole>
  CHORALE_FN Stop read(const Group&, uint64_t unit, uint32_t bytes, Unit& to) const {
    if constexpr (Whole) {
      to = reinterpret_cast<const Unit*>(data)[unit];
    } else {
      to = load_unit(data + unit * unit_bytes, data ? detail::bytes_within(unit, bytes, valid) : 0);
    }
    return Stop::none;
  }

  template <bool Whole>
  CHORALE_FN void write(uint64_t unit, uint32_t bytes, const Unit& from) const {
    if constexpr (Whole) {
      reinterpret_cast<Unit*>(data)[unit] = from;
    } else if (data) {
      store_unit(data + unit * unit_bytes, from, detail::bytes_within(unit, bytes, valid));
    }
  }
#else
  /// Bytes from `at` on that can be viewed in place, a multiple of 16.
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

/// Packets of type P, source or sink, two bytes of slots for each byte of payload. As a source it waits for
/// every packet; as a sink it sends whole units, the last one padded with zeros.
template <class P>
struct Packets {
  P* slots = nullptr;
  uint32_t flag = 0;
  const Deadline* deadline = nullptr;  ///< of a source; null: waits for ever

  Packets() = default;
  CHORALE_HD Packets(void* slots, uint32_t flag, const Deadline* deadline = nullptr)
      : slots(static_cast<P*>(slots)), flag(flag), deadline(deadline) {}
  /// A source only.
  CHORALE_HD Packets(const void* slots, uint32_t flag, const Deadline* deadline = nullptr)
      : slots(static_cast<P*>(const_cast<void*>(slots))), flag(flag), deadline(deadline) {}

  static constexpr bool waits = true;
  static constexpr uint32_t at_once = 1;

  /// Of one thread: waits for one unit.
  CHORALE_FN Stop receive(const Group& group, uint64_t unit, Unit& to) const {
    const P* at = slots + unit * packets_per_unit<P>;
#if defined(__CUDACC__)
    // The data comes with the look that finds it: nothing is read twice where latency counts.
    uint64_t until = 0;
    for (uint32_t spin = 1; !try_read_unit(at, flag, to); ++spin) {
      group.pause(spin);
      if (deadline && spin % 64 == 0) {
        if (until == 0) until = deadline->started();
        const Stop stop = poll_apart(deadline->shared, until);
        if (stop != Stop::none) return try_read_unit(at, flag, to) ? Stop::none : stop;
      }
    }
#else
    // What is asked of a scheduler changes nothing, so the packet is read again once it is known to be there:
    // it stays until its reader has allowed the next one.
    const auto came = [this, at]() -> bool {
      Unit seen;
      return try_read_unit(at, flag, seen);
    };
    while (!try_read_unit(at, flag, to)) {
      const Stop stop = spin_until(group, deadline ? *deadline : Deadline{}, came);
      if (stop != Stop::none) return stop;
    }
#endif
    return Stop::none;
  }

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t) const { return true; }

  template <bool>
  CHORALE_FN Stop read(const Group& group, uint64_t unit, uint32_t, Unit& to) const {
    return receive(group, unit, to);
  }

  template <bool>
  CHORALE_FN void write(uint64_t unit, uint32_t, const Unit& from) const {
    write_unit(slots + unit * packets_per_unit<P>, from, flag);
  }
#else
  uint64_t run(uint64_t) const { return 0; }

  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    const uint64_t first = at / unit_bytes, units = units_of(bytes);
    for (uint64_t index = 0; index < units; ++index) {
      Unit unit;
      const Stop stop = receive(group, first + index, unit);
      if (stop != Stop::none) return stop;
      std::memcpy(room + index * unit_bytes, &unit, unit_bytes);
    }
    seen = room;
    return Stop::none;
  }

  void put(uint64_t at, uint64_t bytes, const char* from) const {
    const uint64_t first = at / unit_bytes, units = units_of(bytes);
    for (uint64_t index = 0; index < units; ++index) {
      write_unit(slots + (first + index) * packets_per_unit<P>, load_unit(from + index * unit_bytes), flag);
    }
  }
#endif
};

/// Sink: all of n sinks of one type, in order. The array outlives the transfer.
template <class S>
struct Many {
  const S* sinks = nullptr;
  uint32_t n = 0;

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const {
    bool yes = true;
    for (uint32_t sink = 0; sink < n; ++sink) yes &= sinks[sink].whole(bytes);
    return yes;
  }

  template <bool Whole>
  CHORALE_FN void write(uint64_t unit, uint32_t bytes, const Unit& from) const {
    for (uint32_t sink = 0; sink < n; ++sink) sinks[sink].template write<Whole>(unit, bytes, from);
  }
#else
  void put(uint64_t at, uint64_t bytes, const char* from) const {
    for (uint32_t sink = 0; sink < n; ++sink) sinks[sink].put(at, bytes, from);
  }
#endif
};

/// Sink: the same place in the memory of all members of a switch channel, by plain stores.
struct MultiStore {
  char* const* members = nullptr;  ///< by rank
  uint32_t n = 0;
  uint64_t offset = 0;  ///< bytes into each member
  uint64_t valid = unlimited;

  CHORALE_FN Mem member(uint32_t rank) const { return {members[rank] + offset, valid}; }

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const {
    bool yes = true;
    for (uint32_t rank = 0; rank < n; ++rank) yes &= member(rank).whole(bytes);
    return yes;
  }

  template <bool Whole>
  CHORALE_FN void write(uint64_t unit, uint32_t bytes, const Unit& from) const {
    for (uint32_t rank = 0; rank < n; ++rank) member(rank).template write<Whole>(unit, bytes, from);
  }
#else
  void put(uint64_t at, uint64_t bytes, const char* from) const {
    for (uint32_t rank = 0; rank < n; ++rank) member(rank).put(at, bytes, from);
  }
#endif
};

/// Sink: both.
template <class A, class B>
struct Tee {
  A a;
  B b;

#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t bytes) const { return a.whole(bytes) && b.whole(bytes); }

  template <bool Whole>
  CHORALE_FN void write(uint64_t unit, uint32_t bytes, const Unit& from) const {
    a.template write<Whole>(unit, bytes, from);
    b.template write<Whole>(unit, bytes, from);
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
