#pragma once
// Messages that say how long they are, so that ends which disagree find out instead of hanging or mixing up
// their data. They go over a transport's rings, as those of tiles.hpp do, and may stand between these.
//
// A message is moved by as many groups on either side, each its share over the channel of its id. A share
// begins with a unit that says how long the message is, in the slot of the first data: what fits in a slot is
// one signal. Groups wait for their link only, so a rank that has a group for each peer and direction may
// send to and receive from everybody, whatever the order of its peers and however short the rings.

#include <cstdint>
#include <cstring>

#include "chorale/device/context.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/engine.hpp"
#include "chorale/device/fabrics.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/link.hpp"

namespace chorale {

namespace detail {

/// What each share begins with.
struct alignas(unit_bytes) MessageHead {
  uint64_t bytes;   ///< of the message
  uint64_t groups;  ///< that move it
};
static_assert(sizeof(MessageHead) == unit_bytes);

CHORALE_FN void refuse_groups(const Endpoint& e, uint64_t said, uint32_t ours) {
#if defined(__CUDACC__)
  (void)e, (void)said, (void)ours;
  refuse("the sender's message is moved by another number of groups");
#else
  refuse("over channel " + std::to_string(e.channel) + " rank " + std::to_string(e.peer) +
         " sends a message by " + std::to_string(said) + " groups, and rank " + std::to_string(e.self) +
         " receives it by " + std::to_string(ours) + "; give both the same number of blocks");
#endif
}

/// How a group stands with its share of a message.
struct ShareInSlots {
  uint64_t begin = 0, bytes = 0;  ///< of the share
  uint64_t slot = 0;
  uint64_t position = 0;  ///< of the slot at hand, in the stream
  uint64_t done = 0;      ///< bytes of the share before it
  uint32_t head = unit_bytes;

  CHORALE_FN ShareInSlots(const Group& group, const Endpoint& e, uint64_t message, uint64_t position)
      : slot(e.slot_bytes()), position(position) {
    Leg leg;
    leg.bytes = message;
    const Leg share = share_of(leg, group.id, group.count, unit_bytes);
    begin = share.begin;
    bytes = share.bytes;
  }

  /// Of the slot at hand.
  CHORALE_FN uint64_t part() const {
    const uint64_t left = bytes - done, room = slot - head;
    return left < room ? left : room;
  }
  CHORALE_FN uint64_t end() const { return position + head + units_of(part()) * unit_bytes; }
  CHORALE_FN bool first() const { return head != 0; }
  CHORALE_FN bool last() const { return done + part() == bytes; }
  CHORALE_FN void advance() {
    done += part();
    position += slot;
    head = 0;
  }
};

}  // namespace detail

/// Sends this group's share of `bytes` bytes at `data` to the peer of `e`. Any length, 0 too, and any
/// alignment; multiples of 16 are fast. The data must stay until the call returns, and no longer.
template <class Ops = Direct>
CHORALE_FN Stop send_message(const Group& group, const Endpoint& e, const void* data, uint64_t bytes,
                             const Deadline& deadline = {}) {
  detail::ShareInSlots at(group, e, bytes, load_relaxed(&e.local->cursor.sent));
  for (bool more = true; more; at.advance()) {
    const uint64_t behind = at.position + at.slot, part = at.part();
    // Before the first slot always: it synchronises, so that all threads have read the position that the
    // leader is about to advance.
    if (behind > e.window || at.first()) {
      const Stop stop = Ops::wait_free(group, e, behind > e.window ? behind - e.window : 0, deadline);
      if (stop != Stop::none) return stop;
    }
    char* const region = Ops::stage(e, at.position);
    if (at.first() && group.leader()) {
      const detail::MessageHead head{bytes, group.count};
      Unit unit;
      std::memcpy(&unit, &head, unit_bytes);
      store_unit(region, unit);
    }
    const char* const from = static_cast<const char*>(data) + at.begin + at.done;
    transfer(group, part, Mem(static_cast<const void*>(from)), Mem(static_cast<void*>(region + at.head)));
    more = !at.last();
    const Stop stop = detail::signal_and_advance<Ops>(group, !more, &e.local->cursor.sent, behind, [&] {
      return Ops::signal(group, e, at.position, at.end(), 0, deadline);
    });
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

/// Receives this group's share of `bytes` bytes from the peer of `e` to `data`, as send_message(). What it
/// has written may be read by other threads of the group when it returns.
///
/// \param sent  written, in every thread: `bytes`, unless the peer's message has another length, which it
/// then
///              is. Nothing is taken of such a message, and the answer is Stop::aborted: somebody has to stop
///              the world, since the peer may be waiting for room.
template <class Ops = Direct>
CHORALE_FN Stop recv_message(const Group& group, const Endpoint& e, void* data, uint64_t bytes,
                             const Deadline& deadline, uint64_t& sent) {
  sent = bytes;
  detail::ShareInSlots at(group, e, bytes, load_relaxed(&e.local->cursor.received));
  for (bool more = true; more; at.advance()) {
    // One signal a slot: with its first unit all of it is there, however long the peer thinks it is.
    Stop stop = Ops::wait(group, e, at.position + unit_bytes, deadline);
    if (stop != Stop::none) return stop;
    const char* const region = Ops::land(e, at.position);
    if (at.first()) {
      const Unit unit = load_unit(region);
      detail::MessageHead head;
      std::memcpy(&head, &unit, unit_bytes);
      sent = head.bytes;
      if (sent != bytes) return Stop::aborted;
      if (head.groups != group.count) detail::refuse_groups(e, head.groups, group.count);
    }
    char* const to = static_cast<char*>(data) + at.begin + at.done;
    transfer(group, at.part(), Mem(static_cast<const void*>(region + at.head)), Mem(static_cast<void*>(to)));
    more = !at.last();
    const uint64_t behind = at.position + at.slot;
    stop = detail::signal_and_advance<Ops>(group, !more, &e.local->cursor.received, behind,
                                           [&] { return Ops::signal_free(group, e, behind, deadline); });
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

}  // namespace chorale
