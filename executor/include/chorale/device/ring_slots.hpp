#pragma once
// These functions work on one slot of a link's ring, over any fabric. Collectives use them on each of many
// links. `at` says which tile is in the slot.

#include <cstdint>
#include <type_traits>

#include "chorale/device/tiles.hpp"

namespace chorale {
namespace detail {

/// Does what with_link() does, but with the column `ring` of links.def instead of `fabric`. For a rank's link
/// to itself that is Direct. So if each thread handles one link, all threads take the same branch, and their
/// writes are ordered once. One such order takes two microseconds between GPUs.
template <class F>
CHORALE_FN decltype(auto) with_ring(const Endpoint& e, F&& f) {
#define CHORALE_LINK(name, fabric, ring) \
  if (!std::is_same_v<ring, Direct> && e.kind == LinkKind::name) return f(ring{});
#include "chorale/device/links.def"
  return f(Direct{});
}

/// Return addresses of a slot: staged_slot() where it is filled, and landed_slot() where it is read.
CHORALE_FN char* staged_slot(const Endpoint& e, const Progress& at) {
  return with_ring(e, [&](auto fabric) { return decltype(fabric)::stage(e, at.position()); });
}
CHORALE_FN const char* landed_slot(const Endpoint& e, const Progress& at) {
  return with_ring(e, [&](auto fabric) { return decltype(fabric)::land(e, at.position()); });
}

/// Waits until the peer has read the previous tile in the slot.
CHORALE_FN Stop await_free_slot(const Group& group, const Endpoint& e, const Progress& at,
                                const Deadline& deadline) {
  const uint64_t behind = at.position() + at.slot, upto = behind > e.window ? behind - e.window : 0;
  return with_ring(e, [&](auto fabric) { return decltype(fabric)::wait_free(group, e, upto, deadline); });
}

/// Waits until `bytes` bytes of the slot have arrived.
CHORALE_FN Stop await_slot(const Group& group, const Endpoint& e, const Progress& at, uint64_t bytes,
                           const Deadline& deadline) {
  const uint64_t upto = at.position() + units_of(bytes) * unit_bytes;
  return with_ring(e, [&](auto fabric) { return decltype(fabric)::wait(group, e, upto, deadline); });
}

/// Tells the peer that `bytes` bytes of the slot have arrived.
/// \param last  true if they end the message
/// \param note  describes the message, for checks; see Progress::note()
CHORALE_FN Stop signal_slot(const Group& group, const Endpoint& e, const Progress& at, uint64_t bytes,
                            bool last, uint64_t note, const Deadline& deadline) {
  const uint64_t begin = at.position(), end = begin + units_of(bytes) * unit_bytes;
  return with_ring(e, [&](auto fabric) {
    using Ops = decltype(fabric);
    return signal_and_advance<Ops>(group, e, last, &e.local->cursor.sent, at.start, at.end(),
                                   [&] { return Ops::signal(group, e, begin, end, note, deadline); });
  });
}

/// Tells the peer that the slot is free again.
/// \param last  true if the slot ends the message
/// \param stored  as in a fabric's signal_free()
CHORALE_FN Stop free_slot(const Group& group, const Endpoint& e, const Progress& at, bool last, bool stored,
                          const Deadline& deadline) {
  const uint64_t upto = at.position() + at.slot;
  return with_ring(e, [&](auto fabric) {
    using Ops = decltype(fabric);
    return signal_and_advance<Ops>(group, e, last, &e.local->cursor.received, at.start, at.end(),
                                   [&] { return Ops::signal_free(group, e, upto, deadline, stored); });
  });
}

/// Waits until no data sent over a link is still read from this rank's memory.
CHORALE_FN Stop drain_link(const Group& group, const Endpoint& e, const Deadline& deadline) {
  return with_ring(e, [&](auto fabric) { return decltype(fabric)::drain(group, e, deadline); });
}

/// Does drain_link() for all links of the group.
CHORALE_FN Stop drain_links(const Group& group, const EndpointTable& table, const Deadline& deadline) {
  for (int32_t rank = 0; rank < table.ranks; ++rank) {
    const Stop stop = drain_link(group, table.at(rank, group.id), deadline);
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

}  // namespace detail
}  // namespace chorale
