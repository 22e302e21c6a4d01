#pragma once
// send_packets() and recv_packets() move short messages as packets. The data carries its own arrival flag, so
// the receiver waits for no separate signal. In return LL8 and LL16 take two bytes of memory per byte, and
// the whole message must fit in the transport's packet_bytes.
//
// Both ends count the messages of a link in device memory, from 1. Message m is in one of two banks of its
// packet form, chosen by m % 2. Its flag also comes from m, so no kernel argument changes from run to run.
// Message m may be written once the peer has read m - 2, because no later message was in the same bank. The
// peer sends this credit after it has read, when usually no one waits for it.
//
// When messages are checked (CHORALE_CHECKED, see checked.hpp), a sender announces the length of its packets
// beside them, and a receiver waits for that first. If the sender's build does not check, the receiver
// accepts its packets unchecked.

#include <cstdint>
#include <type_traits>

#include "chorale/device/tiles.hpp"

namespace chorale {

/// Limits a group's share of a message, in bytes, that goes as packets when the library chooses. A longer
/// share goes through the ring, because packets take twice the bandwidth.
inline constexpr uint64_t longest_in_packets = 16 << 10;

/// Limits the bytes that all groups of a rank together send as packets in a collective, when the library
/// chooses. Above this limit the extra bandwidth of packets takes longer than the signals that they save.
inline constexpr uint64_t most_in_packets = 1 << 20;

namespace detail {
/// Returns whether all data that a rank sends may go as packets, if it sends `bytes` bytes to each other
/// rank.
CHORALE_FN bool packets_for_all(uint64_t bytes, int32_t ranks) {
  return bytes * uint32_t(ranks - 1) <= most_in_packets;
}

CHORALE_FN uint32_t packet_flag(uint64_t message) { return uint32_t(message % 0xffffffffu) + 1; }

/// Returns the peer's credit at which message `number` may be written. The peer has then read the bank's
/// earlier message.
CHORALE_FN uint64_t packet_credit(uint64_t number) { return number < 2 ? 0 : number - 2; }

/// Waits until the peer has read the earlier message in the bank of message `number`. Synchronises the group.
CHORALE_FN Stop await_packet_room(const Group& group, const LinkState& link, uint64_t number,
                                  const Deadline& deadline) {
  return await_credit(group, &link.slot_free.note, packet_credit(number), deadline);
}

/// Tells the peer that it has room again. Called by a group that has synchronised after its last read of
/// message `number`. Synchronises, so that all threads see the number in the next call.
CHORALE_FN void free_packets(const Group& group, const Endpoint& e, uint64_t number) {
  if (group.leader()) {
    end_message(e, &e.local->cursor.packets_received, number - 1, number);
    group.step();
    give_credit(&e.remote->slot_free.note, number);
  }
  group.sync();
}

/// Returns the note that both ends of a link must agree on, for a message of `bytes` bytes from each group.
template <class P>
CHORALE_FN Note packet_note(uint64_t number, uint32_t groups, uint64_t bytes) {
  return {number, groups, sizeof(P), bytes};
}

/// Sends the peer the note of a message. Called by one thread, after the peer has room and before the first
/// packet.
CHORALE_FN void say_packets(const Group& group, const Endpoint& e, uint64_t number, const Note& note) {
  PacketNote& there = e.remote->left.packets[number % 2];
  group.step();
  store_relaxed(&there.word, note.word);
  store_release(&there.number, number);
}

template <class P>
CHORALE_FN bool first_packet_came(const P* slot, uint32_t flag) {
  typename P::Payload payload;
  return P::try_read(slot, flag, payload);
}
CHORALE_FN bool first_packet_came(const LL128* line, uint32_t flag) {
  return load_relaxed(&line->flag) == flag;
}

/// Waits for the note of a message and checks it, before the first packet is taken. Synchronises the group.
/// \param slots the message's slots; the first one holds a packet
template <class P>
CHORALE_FN Stop hear_packets(const Group& group, const Endpoint& e, uint64_t number, const void* slots,
                             const Note& ours, const Deadline& deadline) {
  const PacketNote* const there = &e.local->left.packets[number % 2];
  const P* const first = static_cast<const P*>(slots);
  const uint32_t flag = packet_flag(number);
  const auto said = [there, number]() -> bool { return load_acquire(&there->number) == number; };
  const Stop stop = leader_awaits(group, deadline, [&said, first, flag]() -> bool {
    // The packet is checked first, because its note was written before it. Nothing orders the two between
    // GPUs. If a packet overtakes its note, the message goes unchecked.
    const bool came = first_packet_came(first, flag);
    return said() || came;
  });
  if (stop == Stop::none && group.leader() && said()) {
    const Note note(load_relaxed(&there->word));
    if (note.word != ours.word) refuse_message(e, note, ours, "packets");
  }
  return stop;
}

template <class P>
CHORALE_FN void check_packets(const Group& group, const Endpoint& e, const Leg& leg) {
#if defined(__CUDACC__)
  if (std::is_same_v<P, LL128> && group.size % warp_threads != 0)
    refuse("LL128 packets need groups of whole warps");
#else
  (void)group;  // a warp is one thread
#endif
  if (packet_bytes<P>(leg.bytes) > e.packet_bytes) {
    refuse("a message of packets is longer than the transport's packet_bytes, or its link has none");
  }
}
}  // namespace detail

/// Sends as send_tiles() does, but in packets of form P. Refuses a share that does not fit in the transport's
/// packet_bytes. It has no block hooks. LL128 needs groups of whole warps.
template <class P, class T, class Produce = CopyProduce, class X = None>
CHORALE_FN Stop send_packets(const Group& group, const Endpoint& e, const Leg& message,
                             const Produce& produce = {}, const Deadline& deadline = {}, X* extra = nullptr) {
  static_assert(!is_block_hook<Produce>, "packets take value hooks");
  const Leg leg = detail::typed<T>(message);
  if (leg.bytes == 0) return Stop::none;
  detail::check_packets<P>(group, e, leg);
  const uint64_t number = load_relaxed(&e.local->cursor.packets_sent) + 1;
  const Stop stop = detail::await_packet_room(group, *e.local, number, deadline);
  if (stop != Stop::none) return stop;
  if constexpr (CHORALE_CHECKED) {
    const detail::Note note = detail::packet_note<P>(number, group.count, leg.bytes);
    if (group.leader()) detail::say_packets(group, e, number, note);
    group.sync();
  }
  const Ctx<X> ctx = detail::context(group, e, leg, leg.bytes, extra);
  char* const slots = e.packet_dst + packet_bank<P>(number) * e.packet_bytes;
  detail::produce<T>(group, leg, produce, ctx, 0, leg.bytes, Packets<P>(slots, detail::packet_flag(number)));
  if (group.leader()) detail::end_message(e, &e.local->cursor.packets_sent, number - 1, number);
  group.sync();  // makes the number visible to all threads in the next call
  return Stop::none;
}

/// Receives as recv_tiles() does, from a send_packets() with the same P.
template <class P, class T, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop recv_packets(const Group& group, const Endpoint& e, const Leg& message,
                             const Consume& consume = {}, const Deadline& deadline = {}, X* extra = nullptr) {
  static_assert(!is_block_hook<Consume>, "packets take value hooks");
  const Leg leg = detail::typed<T>(message);
  if (leg.bytes == 0) return Stop::none;
  detail::check_packets<P>(group, e, leg);
  const uint64_t number = load_relaxed(&e.local->cursor.packets_received) + 1;
  const Ctx<X> ctx = detail::context(group, e, leg, leg.bytes, extra);
  const char* const slots = e.packet_src + packet_bank<P>(number) * e.packet_bytes;
  if constexpr (CHORALE_CHECKED) {
    const detail::Note ours = detail::packet_note<P>(number, group.count, leg.bytes);
    const Stop heard = detail::hear_packets<P>(group, e, number, slots, ours, deadline);
    if (heard != Stop::none) return heard;
  }
  // The transfer waits, so it ends synchronised.
  const Stop stop = detail::consume<T>(group, leg, consume, ctx, 0, leg.bytes,
                                       Packets<P>(slots, detail::packet_flag(number), &deadline));
  if (stop != Stop::none) return stop;
  detail::free_packets(group, e, number);
  return Stop::none;
}

}  // namespace chorale
