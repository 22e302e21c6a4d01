#pragma once
// With a PacketExchange every rank sends packets to every other rank and reads theirs, in one message per
// link. Use it to build collectives of short messages. The threads of the group divide the waits and credits
// of all links among them, so many peers cost no more time than one.
//
//   PacketExchange<LL16> exchange(group, table, deadline);
//   stop = exchange.begin(bytes);              `bytes` bytes of slots in the message to each peer
//   exchange.send(offset, unit, value);        a unit for all peers, or exchange.send_to(peer, ...)
//   exchange.sum<Op, T>(offset, unit, own, to) a unit from all peers, combined in rank order
//   exchange.each_rank(offset, unit, ...)      units from all peers, one rank after the other
//   exchange.receive(peer, offset, unit, to)   a unit from one peer
//   exchange.end();
//
// `offset` is in bytes of slots, and `unit` counts units of 16 bytes of data from there. Any thread may send
// and read any unit. You may divide the slots of a message into parts that are used one after the other, such
// as one for the data and one for the sums.

#include <cstdint>
#include <type_traits>

#include "chorale/device/packet_link.hpp"
#include "chorale/device/reduce.hpp"
#include "chorale/device/threads.hpp"

namespace chorale {

/// Exchanges packets of form P, LL8 or LL16. One group per rank uses a channel: the group with the channel's
/// id. All links of that channel must have had the same number of packet messages. On CUDA the group is a
/// whole block, and its exchanges follow one another.
template <class P>
class PacketExchange {
 public:
  static constexpr int32_t most_ranks = 16;

  CHORALE_FN PacketExchange(const Group& group, const EndpointTable& table, const Deadline& deadline)
      : group_(group),
        table_(table),
        deadline_(deadline),
#if defined(__CUDACC__)
        places_(places_of_block()),
#endif
        self_(table.self),
        ranks_(table.ranks) {
    if (ranks_ > most_ranks) refuse("an exchange of packets has more than 16 ranks");
  }

  CHORALE_FN int32_t peers() const { return ranks_ - 1; }

  /// Waits until all peers have room. After a stop nothing has been sent. Synchronises the group.
  /// \param bytes  the bytes of slots that the message to each peer takes, see packet_bytes()
  CHORALE_FN Stop begin(uint64_t bytes) {
    if (ranks_ == 1) return Stop::none;
    // Look up the addresses of all counts before the first count is loaded. That saves one access to memory.
    const auto link_to = [&](int32_t peer) { return table_.at(peer, group_.id).local; };
    const int32_t mine = int32_t(group_.rank) == self_ ? ranks_ : int32_t(group_.rank);
    const LinkState* const any = link_to(self_ == 0 ? 1 : 0);
    const LinkState* const link = mine < ranks_ ? link_to(mine) : any;
    number_ = load_relaxed(&any->cursor.packets_sent) + 1;
    Stop stop = mine < ranks_ ? await_room(*link) : Stop::none;
    for (uint32_t peer = group_.rank + group_.size; peer < uint32_t(ranks_); peer += group_.size) {
      if (int32_t(peer) != self_ && stop == Stop::none) stop = await_room(*link_to(int32_t(peer)));
    }
    const uint32_t flag = detail::packet_flag(number_);
    const uint64_t bank = packet_bank<P>(number_);
    for (int32_t peer = first_place(); peer < ranks_; peer += places_apart()) {
      if (peer == self_) continue;
      const Endpoint& e = table_.at(peer, group_.id);
      if (bytes > e.packet_bytes) {
        refuse("a message of packets is longer than the transport's packet_bytes, or its link has none");
      }
      places_.from[peer < self_ ? peer : peer - 1] = Packets<P>(e.packet_src + bank * e.packet_bytes, flag);
      // Each rank begins with a different peer.
      places_.to[distance(peer)] = Packets<P>(static_cast<void*>(e.packet_dst + bank * e.packet_bytes), flag);
    }
    return group_.agree(stop);
  }

  /// Sends a unit to all peers. Called by one thread.
  CHORALE_FN void send(uint64_t offset, uint64_t unit, const Unit& value) const {
    constexpr int32_t ahead = 8;
    for (int32_t first = 0; first < peers(); first += ahead) {
      Packets<P> to[ahead];  // looked up before the first store, because a later look-up would wait for it
#if defined(__CUDACC__)
#pragma unroll
#endif
      for (int32_t index = 0; index < ahead; ++index) {
        to[index] = places_.to[first + index < peers() ? first + index : peers() - 1];
      }
#if defined(__CUDACC__)
#pragma unroll
#endif
      for (int32_t index = 0; index < ahead; ++index) {
        if (first + index < peers()) write(to[index], offset, unit, value);
      }
    }
  }
  /// Sends a unit to `peer`, another rank. Called by one thread.
  CHORALE_FN void send_to(int32_t peer, uint64_t offset, uint64_t unit, const Unit& value) const {
    write(places_.to[distance(peer)], offset, unit, value);
  }

  /// Waits for a unit from `peer`, another rank. Called by one thread.
  CHORALE_FN Stop receive(int32_t peer, uint64_t offset, uint64_t unit, Unit& to) const {
    return at(peer < self_ ? peer : peer - 1, offset).receive(group_, unit, to);
  }

  /// Waits for this unit from all peers and combines theirs and this rank's own in rank order. Called by one
  /// thread.
  template <ReduceOp Op, class T>
  CHORALE_FN Stop sum(uint64_t offset, uint64_t unit, const Unit& own, Unit& to) const;

  /// Waits for units `unit`, `unit + stride` and so on from all peers, N of them, and calls take(rank, units)
  /// for each rank in order, with `own` for this rank. Called by one thread. After a stop it may have called
  /// take() for some ranks.
  template <uint32_t N, class Take>
  CHORALE_FN Stop each_rank(uint64_t offset, uint64_t unit, uint64_t stride, const Unit (&own)[N],
                            const Take& take) const;

  /// Tells the peers that their room is free again, after the group has read all their data. Synchronises.
  CHORALE_FN void end() const {
    group_.sync();
    for (int32_t peer = int32_t(group_.rank); peer < ranks_; peer += int32_t(group_.size)) {
      if (peer == self_) continue;
      const Endpoint& e = table_.at(peer, group_.id);
      detail::end_message(e, &e.local->cursor.packets_sent, number_ - 1, number_);
      detail::end_message(e, &e.local->cursor.packets_received, number_ - 1, number_);
      group_.step();
      give_credit(&e.remote->slot_free.note, number_);
    }
    group_.sync();  // makes the count visible to all threads in the next exchange
  }

 private:
  /// Says where packets go and come from.
  struct Places {
    Packets<P> to[most_ranks - 1];    ///< by distance
    Packets<P> from[most_ranks - 1];  ///< by rank
  };

#if defined(__CUDACC__)
  /// Returns the block's places, which are in shared memory. One thread fills each. They are indexed at run
  /// time, so if each thread had its own, they would be in local memory. For a large block that is more than
  /// a cache holds.
  CHORALE_FN static Places& places_of_block() {
    alignas(16) __shared__ char room[sizeof(Places)];
    return *reinterpret_cast<Places*>(room);
  }
  CHORALE_FN int32_t first_place() const { return int32_t(group_.rank); }
  CHORALE_FN int32_t places_apart() const { return int32_t(group_.size); }
#else
  CHORALE_FN int32_t first_place() const { return 0; }
  CHORALE_FN int32_t places_apart() const { return 1; }
#endif

  /// Waits until the peer of that link has room. Called by one thread.
  CHORALE_FN Stop await_room(const LinkState& link) const {
    const uint64_t sent = load_relaxed(&link.cursor.packets_sent),
                   received = load_relaxed(&link.cursor.packets_received);
    if (sent + 1 != number_ || received + 1 != number_) {
      refuse("the links of this channel have had different numbers of packet messages");
    }
    return detail::await_packet_room(alone(group_), link, number_, deadline_);
  }

  CHORALE_FN int32_t distance(int32_t peer) const { return (peer - self_ - 1 + ranks_) % ranks_; }

  /// Returns the packets of the index-th peer in rank order, from `offset` on.
  CHORALE_FN Packets<P> at(int32_t index, uint64_t offset) const {
    return Packets<P>(reinterpret_cast<const char*>(places_.from[index].slots) + offset,
                      places_.from[index].flag, &deadline_);
  }

  CHORALE_FN void write(const Packets<P>& to, uint64_t offset, uint64_t unit, const Unit& value) const {
    P* const slots = reinterpret_cast<P*>(reinterpret_cast<char*>(to.slots) + offset);
    group_.step();
    write_unit(slots + unit * packets_per_unit<P>, value, to.flag);
  }

  const Group& group_;
  const EndpointTable& table_;
  const Deadline& deadline_;
#if defined(__CUDACC__)
  Places& places_;
#else
  Places places_;
#endif
  const int32_t self_, ranks_;
  uint64_t number_ = 0;
};

#if defined(__CUDACC__)
template <class P>
template <ReduceOp Op, class T>
CHORALE_FN Stop PacketExchange<P>::sum(uint64_t offset, uint64_t unit, const Unit& own, Unit& to) const {
  // K peers are checked together, as many as a node of eight GPUs has; see Packets<P>::gather.
  constexpr uint32_t K = detail::together<T, 1>;
  const Turn turn{unit, 1, 1, unit_bytes};
  const uint32_t n = uint32_t(peers()), now = n < K ? n : K, self = uint32_t(self_);
  PacketWords held[K][1];
  Stop stop = Packets<P>::template gather<true, K, 1>(
      group_, turn, now, [&](uint32_t index) { return at(int32_t(index), offset); }, held);
  if (stop != Stop::none) return stop;
  detail::Sum<Op, T> sum;
  sum.start(self == 0 || n == 0 ? own : unit_of(held[0][0]));
#pragma unroll
  for (uint32_t index = 0; index < K; ++index) {
    if (index == self && index != 0) sum.add(own);
    if (index < now && (index != 0 || self == 0)) sum.add(unit_of(held[index][0]));
  }
#pragma unroll 1
  for (uint32_t index = K; index < n; ++index) {
    if (index == self) sum.add(own);
    PacketWords next[1][1];
    stop = Packets<P>::template gather<true, 1, 1>(
        group_, turn, 1, [&](uint32_t) { return at(int32_t(index), offset); }, next);
    if (stop != Stop::none) return stop;
    sum.add(unit_of(next[0][0]));
  }
  // This adds the last rank's own data. If the loop has handled K ranks, it was not among them.
  if (self == n && n >= K) sum.add(own);
  to = sum.finish(Op == ReduceOp::avg ? uint32_t(ranks_) : 0);
  return Stop::none;
}

template <class P>
template <uint32_t N, class Take>
CHORALE_FN Stop PacketExchange<P>::each_rank(uint64_t offset, uint64_t unit, uint64_t stride,
                                             const Unit (&own)[N], const Take& take) const {
  constexpr uint32_t K = N > 1 ? 2 : 6;  // peers that are checked together: their words are in registers
  const Turn turn{unit, stride, N, unit_bytes};
  const uint32_t n = uint32_t(peers()), self = uint32_t(self_);
#pragma unroll 1
  for (uint32_t first = 0; first < n; first += K) {
    PacketWords held[K][N];
    const uint32_t now = n - first < K ? n - first : K;
    const Stop stop = Packets<P>::template gather<true, K, N>(
        group_, turn, now, [&](uint32_t index) { return at(int32_t(first + index), offset); }, held);
    if (stop != Stop::none) return stop;
#pragma unroll
    for (uint32_t index = 0; index < K; ++index) {
      if (index >= now) continue;
      const uint32_t peer = first + index;
      if (peer == self) take(int32_t(self), own);
      Unit units[N];
#pragma unroll
      for (uint32_t which = 0; which < N; ++which) units[which] = unit_of(held[index][which]);
      take(int32_t(peer < self ? peer : peer + 1), units);
    }
  }
  if (self == n) take(int32_t(self), own);  // this rank is the last
  return Stop::none;
}
#else
template <class P>
template <uint32_t N, class Take>
CHORALE_FN Stop PacketExchange<P>::each_rank(uint64_t offset, uint64_t unit, uint64_t stride,
                                             const Unit (&own)[N], const Take& take) const {
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    Unit units[N];
    for (uint32_t which = 0; which < N && rank != self_; ++which) {
      const Stop stop = receive(rank, offset, unit + which * stride, units[which]);
      if (stop != Stop::none) return stop;
    }
    take(rank, rank == self_ ? own : units);
  }
  return Stop::none;
}

template <class P>
template <ReduceOp Op, class T>
CHORALE_FN Stop PacketExchange<P>::sum(uint64_t offset, uint64_t unit, const Unit& own, Unit& to) const {
  detail::Sum<Op, T> sum;
  constexpr uint32_t elements = unit_bytes / sizeof(T);
  Unit next = own;
  Stop stop = self_ == 0 ? Stop::none : receive(0, offset, unit, next);
  sum.start(reinterpret_cast<const char*>(&next), elements);
  for (int32_t rank = 1; rank < ranks_ && stop == Stop::none; ++rank) {
    next = own;
    if (rank != self_) stop = receive(rank, offset, unit, next);
    sum.add(reinterpret_cast<const char*>(&next), elements);
  }
  sum.finish(reinterpret_cast<char*>(&to), elements, Op == ReduceOp::avg ? uint32_t(ranks_) : 0);
  return stop;
}
#endif

}  // namespace chorale
