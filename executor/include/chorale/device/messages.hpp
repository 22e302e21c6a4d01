#pragma once
// send_message() and recv_message() move messages that carry their length. If the two ends disagree about it,
// the receiver finds out; otherwise both would hang or mix up their data. These messages use a transport's
// rings, as tiles.hpp does, or its packets, as packet_link.hpp does. A link may carry messages of all three
// files, one after the other.
//
// Sender and receiver use the same number of groups. Each group moves its share over the channel that has its
// id. A share begins with a unit that holds the message's length. If the link has packets, this unit goes as
// a packet. Data after it goes as packets too if it fits in a bank; longer data goes through the ring.
// Without packets, the unit shares a slot with the first data, so a message that fits in a slot takes one
// signal. A group waits only for its link. So a rank that has a group for each peer and direction may send to
// and receive from all ranks, in any order of peers and with rings of any length.

#include <cstdint>
#include <cstring>
#include <string>

#include "chorale/device/context.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/engine.hpp"
#include "chorale/device/fabrics.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/link.hpp"
#include "chorale/device/packet_link.hpp"
#include "chorale/device/packets.hpp"

namespace chorale {

namespace detail {

/// Begins each share of a message.
struct alignas(unit_bytes) MessageHead {
  uint64_t bytes;   ///< bytes of the message
  uint64_t groups;  ///< the number of groups that move it
};
static_assert(sizeof(MessageHead) == unit_bytes);

CHORALE_FN void refuse_groups(const Endpoint& e, uint64_t said, uint32_t ours) {
#if defined(__CUDACC__)
  (void)e, (void)said, (void)ours;
  refuse("the sender moves the message by another number of groups");
#else
  refuse("over channel " + std::to_string(e.channel) + " rank " + std::to_string(e.peer) +
         " sends a message by " + std::to_string(said) + " groups, and rank " + std::to_string(e.self) +
         " receives it by " + std::to_string(ours) + "; give both the same number of blocks");
#endif
}

CHORALE_FN Unit unit_of(const MessageHead& head) {
  Unit unit;
  std::memcpy(&unit, &head, unit_bytes);
  return unit;
}

/// Reads the head of a share and compares it with `bytes`. `sent` is as for recv_message().
CHORALE_FN Stop hear_head(const Group& group, const Endpoint& e, const Unit& unit, uint64_t bytes,
                          uint64_t& sent) {
  MessageHead head;
  std::memcpy(&head, &unit, unit_bytes);
  sent = head.bytes;
  if (sent != bytes) return Stop::aborted;
  if (head.groups != group.count) refuse_groups(e, head.groups, group.count);
  return Stop::none;
}

CHORALE_FN Leg share_of_message(const Group& group, uint64_t bytes) {
  Leg message;
  message.bytes = bytes;
  return share_of(message, group.id, group.count, unit_bytes);
}

/// Returns whether the data of a share goes as packets, as its head does. `share` is its size in bytes.
CHORALE_FN bool as_packets(const Endpoint& e, uint64_t share) {
  return share <= longest_in_packets && packet_bytes<LL16>(unit_bytes + share) <= e.packet_bytes;
}

/// Tracks a group's share of a message in the slots of a ring.
struct ShareInSlots {
  uint64_t bytes = 0;  ///< bytes of the share
  uint64_t slot = 0;
  uint64_t position = 0;  ///< the current slot's position in the stream
  uint64_t done = 0;      ///< bytes of the share before the current slot
  uint32_t head = 0;      ///< bytes of the current slot before its part of the share
  bool first = true;

  /// Begins a share of `share` bytes at `position` of the stream.
  /// \param head  true if the first slot has the head of the message
  CHORALE_FN ShareInSlots(const Endpoint& e, uint64_t share, bool head, uint64_t position)
      : bytes(share), slot(e.slot_bytes()), position(position), head(head ? uint32_t(unit_bytes) : 0) {}

  /// Returns how many bytes of the share are in the current slot.
  CHORALE_FN uint64_t part() const {
    const uint64_t left = bytes - done, room = slot - head;
    return left < room ? left : room;
  }
  CHORALE_FN uint64_t end() const { return position + head + units_of(part()) * unit_bytes; }
  CHORALE_FN bool last() const { return done + part() == bytes; }
  CHORALE_FN void advance() {
    done += part();
    position += slot;
    head = 0;
    first = false;
  }
};

/// Sends a share through the slots of a ring.
/// \param head  the head of the message; null if it went as a packet
template <class Ops>
CHORALE_FN Stop send_in_slots(const Group& group, const Endpoint& e, const MessageHead* head,
                              const char* share, uint64_t bytes, const Deadline& deadline) {
  const uint64_t start = load_relaxed(&e.local->cursor.sent);
  ShareInSlots at(e, bytes, head != nullptr, start);
  for (bool more = true; more; at.advance()) {
    const uint64_t behind = at.position + at.slot;
    // Always wait before the first slot. The wait synchronises, so all threads have read the position before
    // the leader advances it.
    if (behind > e.window || at.first) {
      const Stop stop = Ops::wait_free(group, e, behind > e.window ? behind - e.window : 0, deadline);
      if (stop != Stop::none) return stop;
    }
    char* const region = Ops::stage(e, at.position);
    if (at.head != 0 && group.leader()) store_unit(region, unit_of(*head));
    transfer(group, at.part(), Mem(static_cast<const void*>(share + at.done)),
             Mem(static_cast<void*>(region + at.head)));
    more = !at.last();
    const Stop stop = signal_and_advance<Ops>(group, e, !more, &e.local->cursor.sent, start, behind, [&] {
      return Ops::signal(group, e, at.position, at.end(), 0, deadline);
    });
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

/// Receives a share through the slots of a ring.
/// \param head  true if the first slot begins with the head of the message
/// \param hear  called with that head as a unit; a Stop that it returns ends the call
template <class Ops, class Hear>
CHORALE_FN Stop recv_in_slots(const Group& group, const Endpoint& e, bool head, const Hear& hear, char* share,
                              uint64_t bytes, const Deadline& deadline) {
  const uint64_t start = load_relaxed(&e.local->cursor.received);
  ShareInSlots at(e, bytes, head, start);
  for (bool more = true; more; at.advance()) {
    // There is one signal per slot. So when the first unit has arrived, the whole slot has, whatever length
    // the peer assumes.
    Stop stop = Ops::wait(group, e, at.position + unit_bytes, deadline);
    if (stop != Stop::none) return stop;
    const char* const region = Ops::land(e, at.position);
    if (at.head != 0) stop = hear(load_unit(region));
    if (stop != Stop::none) return stop;
    transfer(group, at.part(), Mem(static_cast<const void*>(region + at.head)),
             Mem(static_cast<void*>(share + at.done)));
    more = !at.last();
    const uint64_t behind = at.position + at.slot;
    stop = signal_and_advance<Ops>(group, e, !more, &e.local->cursor.received, start, behind,
                                   [&] { return Ops::signal_free(group, e, behind, deadline, true); });
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

CHORALE_FN Stop send_as_packets(const Group& group, const Endpoint& e, const MessageHead& head,
                                const char* share, uint64_t bytes, const Deadline& deadline) {
  const uint64_t number = load_relaxed(&e.local->cursor.packets_sent) + 1;
  const Stop stop = await_packet_room(group, *e.local, number, deadline);
  if (stop != Stop::none) return stop;
  LL16* const slots = reinterpret_cast<LL16*>(e.packet_dst + packet_bank<LL16>(number) * e.packet_bytes);
  const uint32_t flag = packet_flag(number);
  if (group.leader()) {
    group.step();
    write_unit(slots, unit_of(head), flag);
    end_message(e, &e.local->cursor.packets_sent, number - 1, number);
  }
  transfer(group, bytes, Mem(static_cast<const void*>(share)),
           Packets<LL16>(static_cast<void*>(slots + packets_per_unit<LL16>), flag));
  group.sync();  // makes the number visible to all threads in the next message
  return Stop::none;
}

template <class Hear>
CHORALE_FN Stop recv_as_packets(const Group& group, const Endpoint& e, const Hear& hear, char* share,
                                uint64_t bytes, const Deadline& deadline) {
  const uint64_t number = load_relaxed(&e.local->cursor.packets_received) + 1;
  const char* const slots = e.packet_src + packet_bank<LL16>(number) * e.packet_bytes;
  const uint32_t flag = packet_flag(number);
  Unit head;
  Stop stop = Packets<LL16>(slots, flag, &deadline).receive(group, 0, head);
  stop = group.agree(stop);
  if (stop == Stop::none) stop = hear(head);
  if (stop != Stop::none) return stop;
  // The transfer waits, so it ends synchronised.
  stop = transfer(group, bytes, Packets<LL16>(slots + packet_slots<LL16>, flag, &deadline),
                  Mem(static_cast<void*>(share)));
  if (stop != Stop::none) return stop;
  free_packets(group, e, number);
  return Stop::none;
}

}  // namespace detail

/// Sends this group's share of the `bytes` bytes at `data` to the peer of `e`. Called by all threads of the
/// group. Any length (also 0) and any alignment work; multiples of 16 are fast. The data must stay unchanged
/// until the call returns. `Ops` is the fabric of the link, see with_link().
template <class Ops = Direct>
CHORALE_FN Stop send_message(const Group& group, const Endpoint& e, const void* data, uint64_t bytes,
                             const Deadline& deadline = {}) {
  const Leg leg = detail::share_of_message(group, bytes);
  const char* const share = static_cast<const char*>(data) + leg.begin;
  const detail::MessageHead head{bytes, group.count};
  if (e.packet_bytes == 0) return detail::send_in_slots<Ops>(group, e, &head, share, leg.bytes, deadline);
  const bool all = detail::as_packets(e, leg.bytes);
  const Stop stop = detail::send_as_packets(group, e, head, share, all ? leg.bytes : 0, deadline);
  if (all || stop != Stop::none) return stop;
  return detail::send_in_slots<Ops>(group, e, nullptr, share, leg.bytes, deadline);
}

/// Receives this group's share of `bytes` bytes from the peer of `e` into `data`; the peer calls
/// send_message(). When it returns, other threads of the group may read the data.
///
/// \param sent  is set in every thread to the length of the peer's message. If it differs from `bytes`, the
///   call takes nothing of the message and returns Stop::aborted. The caller must then stop the world,
///   because the peer may be waiting for room
template <class Ops = Direct>
CHORALE_FN Stop recv_message(const Group& group, const Endpoint& e, void* data, uint64_t bytes,
                             const Deadline& deadline, uint64_t& sent) {
  sent = bytes;
  const Leg leg = detail::share_of_message(group, bytes);
  char* const share = static_cast<char*>(data) + leg.begin;
  const auto hear = [&](const Unit& head) { return detail::hear_head(group, e, head, bytes, sent); };
  if (e.packet_bytes == 0) {
    return detail::recv_in_slots<Ops>(group, e, true, hear, share, leg.bytes, deadline);
  }
  const bool all = detail::as_packets(e, leg.bytes);
  const Stop stop = detail::recv_as_packets(group, e, hear, share, all ? leg.bytes : 0, deadline);
  if (all || stop != Stop::none) return stop;
  return detail::recv_in_slots<Ops>(group, e, false, hear, share, leg.bytes, deadline);
}

}  // namespace chorale
