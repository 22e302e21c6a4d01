#pragma once
// A packet is data that carries its own arrival flag, so that one store replaces a store, a fence and a
// signal.
//
// A flag and its data share one naturally aligned 64-bit word, and words are written and read whole (relaxed,
// system scope). So a reader that sees the flag in a word also sees the data in it, on every machine, without
// a fence. A reader waits until all words of a packet hold exactly the expected flag, so an older flag and a
// later one both mean "not yet". A flag must not be used again while a packet with it may still be in memory.
//
// A slot is in memory that the writer can reach and the reader owns, 16-byte aligned. Fresh memory holds
// zero, which means no flag.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "chorale/device/atomics.hpp"
#include "chorale/device/macros.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

namespace detail {
CHORALE_FN uint64_t packet_word(uint32_t data, uint32_t flag) { return uint64_t(flag) << 32 | data; }
}  // namespace detail

/// Carries 8 bytes in a 16-byte slot: {data, flag, data, flag}.
struct alignas(16) LL16 {
  uint64_t words[2];

  struct Payload {
    uint32_t data[2];
  };

  /// Writes the packet; called by one thread. CUDA: one vector store.
  CHORALE_FN static void write(LL16* slot, const Payload& payload, uint32_t flag) {
    const uint64_t first = detail::packet_word(payload.data[0], flag),
                   second = detail::packet_word(payload.data[1], flag);
#if defined(__CUDACC__)
    // We store two 64-bit elements, because the PTX memory model makes each of them single-copy atomic. Four
    // 32-bit elements would not be enough.
    asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(slot), "l"(first), "l"(second)
                 : "memory");
#else
    store_relaxed(&slot->words[0], first);
    store_relaxed(&slot->words[1], second);
#endif
  }

  /// Reads the payload and returns whether the packet with this flag has arrived. Called by one thread.
  CHORALE_FN static bool try_read(const LL16* slot, uint32_t flag, Payload& payload) {
    uint64_t first, second;
#if defined(__CUDACC__)
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                 : "=l"(first), "=l"(second)
                 : "l"(slot)
                 : "memory");
#else
    first = load_relaxed(&slot->words[0]);
    second = load_relaxed(&slot->words[1]);
#endif
    payload.data[0] = uint32_t(first);
    payload.data[1] = uint32_t(second);
    return uint32_t(first >> 32) == flag && uint32_t(second >> 32) == flag;
  }
};

/// Carries 4 bytes in an 8-byte slot: {data, flag}.
struct alignas(8) LL8 {
  uint64_t word;

  struct Payload {
    uint32_t data[1];
  };

  /// Writes the packet; called by one thread.
  CHORALE_FN static void write(LL8* slot, const Payload& payload, uint32_t flag) {
    store_relaxed(&slot->word, detail::packet_word(payload.data[0], flag));
  }

  /// Reads the payload and returns whether the packet with this flag has arrived. Called by one thread.
  CHORALE_FN static bool try_read(const LL8* slot, uint32_t flag, Payload& payload) {
    const uint64_t word = load_relaxed(&slot->word);
    payload.data[0] = uint32_t(word);
    return uint32_t(word >> 32) == flag;
  }
};

/// Carries 112 bytes in a line of 128: seven units and the flag, stored at once by eight neighbouring lanes
/// of a warp. A visible flag means a visible line only if the hardware delivers such a line whole, as NVLink
/// and a GPU's own memory do; see docs/memory-orders.md. On the CPU the flag is released after the data.
struct alignas(128) LL128 {
  static constexpr uint32_t units = 7;

  Unit data[units];
  uint64_t flag;
  uint64_t unused;
};
static_assert(sizeof(LL128) == 128);

/// Gives the granularity of packets: packet_payload bytes of data take packet_slots bytes of memory. Data is
/// cut at multiples of packet_payload.
template <class P>
constexpr uint32_t packet_payload = unit_bytes;
template <>
inline constexpr uint32_t packet_payload<LL128> = LL128::units* unit_bytes;
template <class P>
constexpr uint32_t packet_slots = 2 * unit_bytes;
template <>
inline constexpr uint32_t packet_slots<LL128> = sizeof(LL128);

/// Sets the number of banks for a link's packets. Messages of LL8 and LL16 alternate between two banks, and
/// messages of LL128 between two others. LL128 has payload where LL8 and LL16 have flags, so in a common bank
/// old payload could be taken for a flag.
inline constexpr uint32_t packet_banks = 4;

/// Returns the bank of message `number` of a link.
template <class P>
CHORALE_HD uint64_t packet_bank(uint64_t number) {
  return number % 2 + (std::is_same_v<P, LL128> ? 2 : 0);
}

/// Returns the bytes of slots for `bytes` bytes of payload.
template <class P>
CHORALE_HD uint64_t packet_bytes(uint64_t bytes) {
  return (bytes / packet_payload<P> + (bytes % packet_payload<P> != 0 ? 1 : 0)) * packet_slots<P>;
}

/// Returns the offset of the slots for data that begins at `payload`, a multiple of packet_payload.
template <class P>
CHORALE_HD uint64_t packet_offset(uint64_t payload) {
  return payload / packet_payload<P> * packet_slots<P>;
}

/// Gives the number of LL8 or LL16 packets that carry one unit.
template <class P>
constexpr uint32_t packets_per_unit = unit_bytes / sizeof(typename P::Payload);

/// Sends one unit in the slots that begin at `slots`. Called by one thread.
template <class P>
CHORALE_FN void write_unit(P* slots, const Unit& unit, uint32_t flag) {
  typename P::Payload payload[packets_per_unit<P>];
  std::memcpy(payload, &unit, unit_bytes);
#if defined(__CUDACC__)
#pragma unroll
#endif
  for (uint32_t packet = 0; packet < packets_per_unit<P>; ++packet)
    P::write(slots + packet, payload[packet], flag);
}

#if defined(__CUDACC__)
/// Holds the words of a unit's packets during a wait for them. All forms of packets have the same layout.
struct PacketWords {
  static constexpr uint32_t n = 2 * unit_bytes / sizeof(uint64_t);
  uint64_t word[n];

  /// Loads the words. Called by one thread.
  CHORALE_FN void load(const void* slots) {
#pragma unroll
    for (uint32_t index = 0; index < n; index += 2) {
      asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                   : "=l"(word[index]), "=l"(word[index + 1])
                   : "l"(static_cast<const uint64_t*>(slots) + index)
                   : "memory");
    }
  }

  /// Returns whether each word has the flag.
  CHORALE_FN bool carry(uint32_t flag) const {
    uint32_t wrong = 0;
#pragma unroll
    for (uint32_t index = 0; index < n; ++index) wrong |= uint32_t(word[index] >> 32) ^ flag;
    return wrong == 0;
  }
};

CHORALE_FN Unit unit_of(const PacketWords& words) {
  Unit unit;
#pragma unroll
  for (uint32_t index = 0; index < PacketWords::n; ++index) unit.item[index] = uint32_t(words.word[index]);
  return unit;
}
#endif

/// Reads the unit and returns whether all its packets have arrived. Called by one thread.
template <class P>
CHORALE_FN bool try_read_unit(const P* slots, uint32_t flag, Unit& unit) {
  typename P::Payload payload[packets_per_unit<P>];
  bool here = true;
#if defined(__CUDACC__)
#pragma unroll
#endif
  for (uint32_t packet = 0; packet < packets_per_unit<P>; ++packet) {
    here &= P::try_read(slots + packet, flag, payload[packet]);
  }
  std::memcpy(&unit, payload, unit_bytes);
  return here;
}

}  // namespace chorale
