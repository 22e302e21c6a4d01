#pragma once
// The collectives of collectives.hpp send short messages as packets. They do so when the hooks are value
// hooks, the groups are blocks, all links have packets, and a group sends little over each link. There is one
// message per link and call. So a block waits for its peers once, or twice if it also sends sums.

#include <cstdint>
#include <type_traits>

#include "chorale/device/link_teams.hpp"
#include "chorale/device/packet_link.hpp"
#include "chorale/device/reduce.hpp"
#include "chorale/device/threads.hpp"

namespace chorale {
namespace detail {

template <class Produce, class Consume>
constexpr bool by_value = !is_block_hook<Produce> && !is_block_hook<Consume>;

/// Returns whether a collective goes as packets if its hooks are by_value. Its groups send up to `longest`
/// bytes over a link in one piece, which take `slots` bytes of the link's packets. The answer is the same on
/// all ranks.
CHORALE_FN bool goes_as_packets(const Group& group, const EndpointTable& table, uint64_t longest,
                                uint64_t slots) {
#if defined(__CUDACC__)
  // Supporting only one kind of group keeps the code small.
  if (group.size % warp_threads != 0) return false;
#endif
  return group.scope == Scope::block && longest != 0 && longest <= longest_in_packets &&
         packets_for_all(longest * group.count, table.ranks) && slots <= table.packet_bytes;
}

/// Says where the packets of a block's links go and come from, and the number of the message on each link.
struct PacketPlaces {
  Packets<LL16> to[most_ranks];    ///< by step: this rank's own, then those to the next rank, and so on
  Packets<LL16> from[most_ranks];  ///< by rank
  uint64_t sent[most_ranks], received[most_ranks];  ///< by step
};

#if defined(__CUDACC__)
/// Returns the block's places, which are in shared memory. One thread fills each. They are indexed at run
/// time, so if each thread had its own array, it would be in local memory.
CHORALE_FN PacketPlaces& packet_places_of_block() {
  alignas(16) __shared__ char room[sizeof(PacketPlaces)];
  return *reinterpret_cast<PacketPlaces*>(room);
}
#endif

/// Reads or writes the packets of one of several links. Each link has its own count of messages, and so its
/// own flag.
struct LinkPackets : Packets<LL16> {
  using Packets<LL16>::Packets;

  static constexpr bool own_flags = true;
};

/// Returns the packets of a place that begin `offset` bytes of slots after its first.
CHORALE_FN LinkPackets packets_at(const Packets<LL16>& place, uint64_t offset, const Deadline* deadline) {
  return LinkPackets(reinterpret_cast<const char*>(place.slots) + offset, place.flag, deadline);
}

/// Returns the packets of all ranks by index. Only sources need a `deadline`.
struct AllPackets {
  const Packets<LL16>* places;
  uint64_t offset;
  const Deadline* deadline;

  CHORALE_FN LinkPackets operator()(uint32_t number) const {
    return packets_at(places[number], offset, deadline);
  }
};

/// Does transfer() for short messages with less code: a thread moves one unit at a time, whole or not.
template <class Source, class Sink>
CHORALE_FN Stop transfer_short(const Group& group, uint64_t bytes, const Source& source, const Sink& sink) {
#if defined(__CUDACC__)
  Stop stop = Stop::none;
  for (uint64_t unit = group.rank; stop == Stop::none && unit < units_of(bytes); unit += group.size) {
    const Turn turn{unit, group.size, 1, bytes_within(unit, unit_bytes, bytes)};
    Unit held[1];
    stop = source.template read<false, 1>(group, turn, held);
    if (stop == Stop::none) sink.template write<false, 1>(turn, held);
  }
  if constexpr (Source::waits) stop = group.agree(stop);
  return stop;
#else
  return transfer(group, bytes, source, sink);
#endif
}

/// Runs one block's part of a collective as packets over all links: begin(), sends, hear(), receives, end().
/// With each_of_team(), teams of the block's warps divide the links among them. The whole block calls
/// everything else.
template <class T, class X>
class PacketCollective {
 public:
  CHORALE_FN PacketCollective(const Group& group, const EndpointTable& table, uint32_t teams,
                              const Deadline& deadline, X* extra)
      : group_(group),
        teams_(teams),
        team_(team_of_links(group, teams_)),
        table_(table),
        deadline_(deadline),
        extra_(extra)
#if defined(__CUDACC__)
        ,
        places_(packet_places_of_block())
#endif
  {
  }

  CHORALE_FN int32_t next(int32_t step) const { return (table_.self + step) % table_.ranks; }
  CHORALE_FN int32_t previous(int32_t step) const {
    return (table_.self + table_.ranks - step) % table_.ranks;
  }
  CHORALE_FN const Group& team() const { return team_; }

  /// Calls f(step) for the steps of the calling thread's team.
  template <class F>
  CHORALE_FN void each_of_team(const F& f) const {
    for (uint32_t step = group_.rank / team_.size; step < uint32_t(table_.ranks); step += teams_) {
      f(int32_t(step));
    }
  }

  /// Waits until all peers have room. After a stop nothing has been sent. Synchronises.
  /// \param bytes must be the same on all ranks; hear() checks it
  CHORALE_FN Stop begin(uint64_t bytes) {
    Stop stop = Stop::none;
    for (uint32_t step = first_place(); step < uint32_t(table_.ranks); step += places_apart()) {
      const int32_t peer = next(int32_t(step));
      const Endpoint& e = table_.at(peer, group_.id);
      const uint64_t sent = load_relaxed(&e.local->cursor.packets_sent) + 1,
                     received = load_relaxed(&e.local->cursor.packets_received) + 1;
      if (stop == Stop::none && waits_for(step)) {
        stop = await_packet_room(alone(group_), *e.local, sent, deadline_);
      }
      const auto bank = [&](uint64_t number) { return packet_bank<LL16>(number) * e.packet_bytes; };
      places_.sent[step] = sent;
      places_.received[step] = received;
      places_.to[step] = Packets<LL16>(static_cast<void*>(e.packet_dst + bank(sent)), packet_flag(sent));
      places_.from[peer] = Packets<LL16>(e.packet_src + bank(received), packet_flag(received));
    }
    stop = group_.agree(stop);
    if constexpr (CHORALE_CHECKED) {
      if (stop != Stop::none) return stop;
      for (uint32_t step = first_place(); step < uint32_t(table_.ranks); step += places_apart()) {
        if (!waits_for(step)) continue;
        const uint64_t number = places_.sent[step];
        say_packets(group_, table_.at(next(int32_t(step)), group_.id), number, note(number, bytes));
      }
      group_.sync();
    }
    return stop;
  }

  /// Checks that the peers have the same `bytes`, if messages are checked. Called before anything is
  /// received. Each peer sends a packet at the beginning of its message. Synchronises if it checks anything.
  CHORALE_FN Stop hear(uint64_t bytes) const {
    if constexpr (CHORALE_CHECKED) {
      Stop stop = Stop::none;
      for (uint32_t step = first_place(); step < uint32_t(table_.ranks); step += places_apart()) {
        if (stop != Stop::none || !waits_for(step)) continue;
        const int32_t peer = next(int32_t(step));
        const uint64_t number = places_.received[step];
        stop = hear_packets<LL16>(alone(group_), table_.at(peer, group_.id), number, places_.from[peer].slots,
                                  note(number, bytes), deadline_);
      }
      return group_.agree(stop);
    } else {
      (void)bytes;
      return Stop::none;
    }
  }

  /// Makes a group's part of `leg` and sends it to one rank.
  template <class Produce>
  CHORALE_FN void send(const Group& group, int32_t step, uint64_t offset, const Leg& leg,
                       const Produce& produce) const {
    make(group, next(step), leg, produce, packets_at(places_.to[step], offset, nullptr));
  }

  /// Makes a group's part of `leg` once and sends it to all ranks. `owner` is the rank whose shard it is.
  template <class Produce>
  CHORALE_FN void send_all(const Group& group, int32_t owner, uint64_t offset, const Leg& leg,
                           const Produce& produce) const {
    make(group, owner, leg, produce, to_all(offset));
  }

  /// Takes a group's part of `leg` from one rank. Synchronises the group.
  template <class Consume>
  CHORALE_FN Stop receive(const Group& group, int32_t peer, uint64_t offset, const Leg& leg,
                          const Consume& consume) const {
    return take(group, peer, leg, consume, packets_at(places_.from[peer], offset, &deadline_));
  }

  /// Takes the part of `leg` from all ranks, combined. `owner` is the rank whose shard it is. Synchronises
  /// the group.
  template <ReduceOp Op, class Consume>
  CHORALE_FN Stop reduce(const Group& group, int32_t owner, uint64_t offset, const Leg& leg,
                         const Consume& consume) const {
    return take(group, owner, leg, consume, combined<Op>(offset));
  }

  /// Combines the block's part of all ranks' `leg` at `offset`, and sends the result to all ranks, at `to`.
  template <ReduceOp Op>
  CHORALE_FN Stop reduce_and_send(uint64_t offset, const Leg& leg, uint64_t to) const {
    return transfer_short(group_, leg.bytes, combined<Op>(offset), to_all(to));
  }

  /// Tells the peers that they have room again, after all threads have read their data. After a stop it tells
  /// them nothing.
  CHORALE_FN Stop end(Stop stop) const {
    stop = group_.agree(stop);
    if (stop != Stop::none) return stop;
    for (uint32_t step = group_.rank; step < uint32_t(table_.ranks); step += group_.size) {
      const Endpoint& e = table_.at(next(int32_t(step)), group_.id);
      const uint64_t sent = places_.sent[step], received = places_.received[step];
      end_message(e, &e.local->cursor.packets_sent, sent - 1, sent);
      end_message(e, &e.local->cursor.packets_received, received - 1, received);
      group_.step();
      give_credit(&e.remote->slot_free.note, received);
    }
    group_.sync();  // makes the counts visible to all threads in the next call
    return Stop::none;
  }

 private:
  CHORALE_FN Note note(uint64_t number, uint64_t bytes) const {
    return packet_note<LL16>(number, group_.count, bytes);
  }

#if defined(__CUDACC__)
  CHORALE_FN uint32_t first_place() const { return group_.rank; }
  CHORALE_FN uint32_t places_apart() const { return group_.size; }
  CHORALE_FN bool waits_for(uint32_t) const { return true; }
#else
  CHORALE_FN uint32_t first_place() const { return 0; }
  CHORALE_FN uint32_t places_apart() const { return 1; }
  CHORALE_FN bool waits_for(uint32_t step) const { return step % group_.size == group_.rank; }
#endif

  CHORALE_FN ManyAt<AllPackets> to_all(uint64_t offset) const {
    return {{places_.to, offset, nullptr}, uint32_t(table_.ranks)};
  }
  template <ReduceOp Op>
  CHORALE_FN ReducedAt<Op, T, AllPackets> combined(uint64_t offset) const {
    const uint32_t n = uint32_t(table_.ranks);
    return {{places_.from, offset, &deadline_}, n, Op == ReduceOp::avg ? n : 0};
  }

  template <class Produce, class Sink>
  CHORALE_FN void make(const Group& group, int32_t peer, const Leg& leg, const Produce& produce,
                       const Sink& sink) const {
    if constexpr (std::is_same_v<Produce, CopyProduce>) {
      transfer_short(group, leg.bytes, Mem(static_cast<const char*>(leg.in) + leg.begin), sink);
    } else {
      const Ctx<X> ctx = in_values<T>(context(group, peer, leg), leg, 0);
      transfer_short(group, leg.bytes, Produced<T, Produce, X>{produce, ctx}, sink);
    }
  }
  template <class Consume, class Source>
  CHORALE_FN Stop take(const Group& group, int32_t peer, const Leg& leg, const Consume& consume,
                       const Source& source) const {
    const Ctx<X> ctx = context(group, peer, leg);
    return transfer_short(group, leg.bytes, source, sink_of<T>(leg, consume, ctx, 0));
  }

  CHORALE_FN Ctx<X> context(const Group& group, int32_t peer, const Leg& leg) const {
    return detail::context(group, table_.at(peer, group_.id), leg, leg.bytes, extra_);
  }

  const Group& group_;
  const uint32_t teams_;
  const Group team_;
  const EndpointTable& table_;
  const Deadline& deadline_;
  X* extra_;
#if defined(__CUDACC__)
  PacketPlaces& places_;
#else
  PacketPlaces places_;
#endif
};

/// Runs all_to_all() as packets.
/// \param teams  see link_teams()
/// \param shard  shard(rank) is this group's part of the data to or from that rank
template <class T, class Shard, class Produce, class Consume, class X>
CHORALE_FN Stop all_to_all_as_packets(const Group& group, const EndpointTable& table, uint32_t teams,
                                      const Shard& shard, const Produce& produce, const Consume& consume,
                                      const Deadline& deadline, X* extra) {
  PacketCollective<T, X> all(group, table, teams, deadline, extra);
  const Leg own = shard(table.self);
  const uint64_t bytes = own.bytes;
  Stop stop = all.begin(bytes);
  if (stop != Stop::none) return stop;
  all.each_of_team([&](int32_t step) { all.send(all.team(), step, 0, shard(all.next(step)), produce); });
  // The received data must not overwrite data in the same place that another team has yet to send.
  if (own.in == own.out) group.sync();
  stop = all.hear(bytes);
  all.each_of_team([&](int32_t step) {
    const int32_t peer = all.previous(step);
    if (stop == Stop::none) stop = all.receive(all.team(), peer, 0, shard(peer), consume);
  });
  return all.end(stop);
}

/// Runs all_gather() as packets.
/// \param own  this group's part of the data that this rank sends
/// \param shard  shard(rank) is this group's part of the data from that rank
template <class T, class Shard, class Produce, class Consume, class X>
CHORALE_FN Stop all_gather_as_packets(const Group& group, const EndpointTable& table, uint32_t teams,
                                      const Leg& own, const Shard& shard, const Produce& produce,
                                      const Consume& consume, const Deadline& deadline, X* extra) {
  PacketCollective<T, X> all(group, table, teams, deadline, extra);
  Stop stop = all.begin(own.bytes);
  if (stop != Stop::none) return stop;
  all.send_all(group, table.self, 0, own, produce);
  stop = all.hear(own.bytes);
  all.each_of_team([&](int32_t step) {
    const int32_t peer = all.previous(step);
    if (stop == Stop::none) stop = all.receive(all.team(), peer, 0, shard(peer), consume);
  });
  return all.end(stop);
}

/// Runs reduce_scatter() as packets.
/// \param own  this group's part of the result
/// \param shard  shard(rank) is this group's part of the data to that rank
template <ReduceOp Op, class T, class Shard, class Produce, class Consume, class X>
CHORALE_FN Stop reduce_scatter_as_packets(const Group& group, const EndpointTable& table, uint32_t teams,
                                          const Leg& own, const Shard& shard, const Produce& produce,
                                          const Consume& consume, const Deadline& deadline, X* extra) {
  PacketCollective<T, X> all(group, table, teams, deadline, extra);
  Stop stop = all.begin(own.bytes);
  if (stop != Stop::none) return stop;
  all.each_of_team([&](int32_t step) { all.send(all.team(), step, 0, shard(all.next(step)), produce); });
  stop = all.hear(own.bytes);
  if (stop != Stop::none) return all.end(stop);
  return all.end(all.template reduce<Op>(group, table.self, 0, own, consume));
}

/// Returns whether an all_reduce() as packets sends the whole message to all ranks, and each rank adds it up.
/// In this way each rank sends more but waits only once.
/// \param share  the bytes of a group's part of a shard
CHORALE_FN bool all_reduce_in_one(int32_t ranks, uint64_t share) {
  return share * uint64_t(ranks) * uint64_t(ranks - 1) <= longest_in_packets;
}

/// Returns the bytes of slots on each link that an all_reduce() as packets takes.
CHORALE_FN uint64_t slots_of_all_reduce(int32_t ranks, uint64_t share) {
  return packet_bytes<LL16>(share) * (all_reduce_in_one(ranks, share) ? uint64_t(ranks) : 2);
}

/// Runs all_reduce() as packets.
/// \param share  share(rank) is this group's part of that rank's shard
/// \param longest  the bytes of the longest part
template <ReduceOp Op, class T, class Share, class Produce, class Consume, class X>
CHORALE_FN Stop all_reduce_as_packets(const Group& group, const EndpointTable& table, uint32_t teams,
                                      const Share& share, uint64_t longest, const Produce& produce,
                                      const Consume& consume, const Deadline& deadline, X* extra) {
  PacketCollective<T, X> all(group, table, teams, deadline, extra);
  const uint64_t part = packet_bytes<LL16>(longest);
  uint64_t bytes = 0;
  if constexpr (CHORALE_CHECKED) {  // the longest part may be equal even when the messages differ
    for (int32_t rank = 0; rank < table.ranks; ++rank) bytes += share(rank).bytes;
  }
  Stop stop = all.begin(bytes);
  if (stop != Stop::none) return stop;
  if (all_reduce_in_one(table.ranks, longest)) {
    all.each_of_team([&](int32_t step) {
      const int32_t owner = all.next(step);
      all.send_all(all.team(), owner, uint64_t(owner) * part, share(owner), produce);
    });
    stop = all.hear(bytes);
    all.each_of_team([&](int32_t step) {
      const int32_t owner = all.next(step);
      if (stop == Stop::none)
        stop = all.template reduce<Op>(all.team(), owner, uint64_t(owner) * part, share(owner), consume);
    });
    return all.end(stop);
  }
  all.each_of_team([&](int32_t step) { all.send(all.team(), step, 0, share(all.next(step)), produce); });
  // A rank that adds up nothing receives no data, so it has nothing to check. The ranks that add up check all
  // peers.
  if (share(table.self).bytes != 0) stop = all.hear(bytes);
  if (stop == Stop::none) stop = all.template reduce_and_send<Op>(0, share(table.self), part);
  all.each_of_team([&](int32_t step) {
    const int32_t peer = all.previous(step);
    if (stop == Stop::none) stop = all.receive(all.team(), peer, part, share(peer), consume);
  });
  return all.end(stop);
}

}  // namespace detail
}  // namespace chorale
