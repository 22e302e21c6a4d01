#pragma once
// With this source and sink, a transfer can read and write packets; see endpoints.hpp.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "chorale/device/deadline.hpp"
#include "chorale/device/endpoints.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/packet.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

/// Uses packets of form P, LL8 or LL16, as a source or a sink. They take two bytes of slots per byte of
/// payload. The source waits for every packet. The sink sends whole units and pads the last one with zeros.
template <class P>
struct Packets {
  P* slots = nullptr;
  uint32_t flag = 0;
  const Deadline* deadline = nullptr;  ///< only for a source; null: waits forever

  Packets() = default;
  CHORALE_HD Packets(void* slots, uint32_t flag, const Deadline* deadline = nullptr)
      : slots(static_cast<P*>(slots)), flag(flag), deadline(deadline) {}
  /// Makes a source only.
  CHORALE_HD Packets(const void* slots, uint32_t flag, const Deadline* deadline = nullptr)
      : slots(static_cast<P*>(const_cast<void*>(slots))), flag(flag), deadline(deadline) {}

  static constexpr bool waits = true;
  static constexpr bool own_flags = false;  ///< whether each of several combined sources has its own flag
  static constexpr uint32_t at_once = 4;

#if defined(__CUDACC__)
  using Loaded = PacketWords;

  CHORALE_FN bool may_take_several() const { return true; }
  CHORALE_FN bool whole(uint64_t) const { return true; }

  /// Waits for the turn's units from sources at(0) .. at(n-1), n <= K. Called by one thread. All sources use
  /// the deadline of at(0), and its flag unless they have flags of their own. It checks all units before it
  /// waits for one, so that packets of several peers cost only one round trip. Then it checks again only the
  /// missing ones. The check that finds a packet also reads its data.
  template <bool, uint32_t K, uint32_t N, class At>
  CHORALE_FN static Stop gather(const Group& group, const Turn& turn, uint32_t n, const At& at,
                                PacketWords (&to)[K][N]) {
    static_assert(K * N <= 32, "there is one bit per unit");
    using Source = std::decay_t<decltype(at(0))>;
    const uint32_t common = n != 0 && !Source::own_flags ? at(0).flag : 0;
    const auto flag_of = [&](uint32_t source) -> uint32_t {
      if constexpr (Source::own_flags) return source < n ? at(source).flag : 0;
      return common;
    };
    const uint64_t first = turn.unit * packets_per_unit<P>, stride = turn.stride * packets_per_unit<P>;
    const P* from[K];
#pragma unroll
    for (uint32_t source = 0; source < K; ++source) {
      from[source] = source < n ? at(source).slots + first : nullptr;
    }
    uint32_t missing = 0;
    if (n == K && turn.n == N) {  // the usual case: no branch is between the loads
      missing = ~0u >> (32 - K * N);
#pragma unroll
      for (uint32_t unit = 0; unit < K * N; ++unit)
        to[unit / N][unit % N].load(from[unit / N] + unit % N * stride);
    } else {
#pragma unroll
      for (uint32_t unit = 0; unit < K * N; ++unit) {
        to[unit / N][unit % N] = PacketWords{};
        if (unit / N < n && unit % N < turn.n) {
          missing |= 1u << unit;
          to[unit / N][unit % N].load(from[unit / N] + unit % N * stride);
        }
      }
    }
    Stop stop = Stop::none;
    uint64_t until = 0;
    for (uint32_t spin = 1;; ++spin) {
#pragma unroll
      for (uint32_t unit = 0; unit < K * N; ++unit) {
        if (to[unit / N][unit % N].carry(flag_of(unit / N))) missing &= ~(1u << unit);
      }
      if (missing == 0) break;
      if (stop != Stop::none) return stop;  // data that came in time counts, even at the last check
      group.pause(spin);
      if (spin % looks_between_polls == 0 && at(0).deadline) {
        const Deadline* const deadline = at(0).deadline;
        if (until == 0) until = deadline->started();
        stop = Deadline{deadline->shared, 0, until}.poll();
      }
      // The addresses are computed again, because keeping them would take a fourth more registers.
#pragma unroll
      for (uint32_t unit = 0; unit < K * N; ++unit) {
        if (missing & 1u << unit) {
          to[unit / N][unit % N].load(at(unit / N).slots + first + unit % N * stride);
        }
      }
    }
    return Stop::none;
  }

  /// Waits for one unit. Called by one thread.
  CHORALE_FN Stop receive(const Group& group, uint64_t unit, Unit& to) const {
    Unit held[1];
    const Stop stop = read<true, 1>(group, Turn{unit, 1, 1, unit_bytes}, held);
    to = held[0];
    return stop;
  }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    Loaded held[1][N];
    const Stop stop = gather<Whole, 1, N>(
        group, turn, 1, [this](uint32_t) -> const Packets& { return *this; }, held);
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) to[index] = unit_of(held[0][index]);
    return stop;
  }

  template <bool, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      P* const at = slots + (turn.unit + index * turn.stride) * packets_per_unit<P>;
      if (index < turn.n) write_unit(at, from[index], flag);
    }
  }
#else
  /// Waits for one unit. Called by one thread.
  Stop receive(const Group& group, uint64_t unit, Unit& to) const {
    const P* at = slots + unit * packets_per_unit<P>;
    // A check by the scheduler must not change anything, so we read the packet again once it has arrived. It
    // stays there until its reader has allowed the next one.
    const auto came = [this, at]() -> bool {
      Unit seen;
      return try_read_unit(at, flag, seen);
    };
    while (!try_read_unit(at, flag, to)) {
      const Stop stop = spin_until(group, deadline ? *deadline : Deadline{}, came);
      if (stop != Stop::none) return stop;
    }
    return Stop::none;
  }

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

}  // namespace chorale
