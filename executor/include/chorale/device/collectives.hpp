#pragma once
// Kernels call these collectives with an EndpointTable and hooks. Each group does its share of every shard
// over the channel that has its id. It sends tile s before it takes tile s-1, so rings need two slots. Links
// of all kinds may be mixed. A rank's own shard goes through its ring to itself.
//
// Short messages of value hooks go as packets instead if all links have them; see packet_collectives.hpp.
// Then groups must be of one kind on all ranks: either all are blocks of whole warps, or none is.
//
// A shard is what one rank sends to another. `leg` describes the first shard, for all groups together, and
// Shards gives the distance to the others. Results have the same bits in every run, because sums are made in
// rank order.
//
// Collectives may run in place: `out` is `in` or, if one of the two is a single shard, this rank's shard of
// the other. A producer must then read only the elements that it makes, and a consumer must write only those
// that it takes.
//
// All threads of the group call a collective, with the same arguments, on all ranks. All threads get the same
// Stop. If it is not Stop::none, do not use the data; reset the links (Transport::reset()) after
// World::reset().

#include <cstdint>
#include <type_traits>

#include "chorale/device/link_teams.hpp"
#include "chorale/device/near_links.hpp"
#include "chorale/device/packet_collectives.hpp"
#include "chorale/device/reduce.hpp"
#include "chorale/device/ring_slots.hpp"
#include "chorale/device/threads.hpp"
#include "chorale/device/tiles.hpp"

namespace chorale {

/// Gives the distance in bytes between consecutive shards in the Leg's `in` and `out`. If `out` is not 0, the
/// threads of a group take several shards in parallel. If `out` is 0, all shards go to one place, as for a
/// hook that accumulates. Then they are taken one after the other: this rank's first, then that of the rank
/// before it, and so on.
struct Shards {
  uint64_t in = 0, out = 0;
};

namespace detail {

/// Returns `group`'s share of shard `of`.
CHORALE_FN Leg shard_of(Leg leg, const Shards& shards, int32_t of) {
  // Without a buffer, hooks get a null pointer, and copies drop what comes.
  if (leg.in) leg.in = static_cast<const char*>(leg.in) + uint64_t(of) * shards.in;
  if (leg.out) leg.out = static_cast<char*>(leg.out) + uint64_t(of) * shards.out;
  leg.shard = uint32_t(of);
  return leg;
}

/// Returns how many teams of a block take the incoming shards.
CHORALE_FN uint32_t teams_for(const Group& group, const EndpointTable& table, const Shards& shards) {
  return shards.out != 0 ? link_teams(group, table.ranks) : 1;
}

/// Gives the ring regions of all ranks by index.
struct AllRegions {
  char* const* regions;
  CHORALE_FN Mem operator()(uint32_t number) const { return Mem(regions[number]); }
};

/// Runs the group's part of a collective over all links. One thread per link waits and signals, for all links
/// at once. Teams of the group's warps share the links and move their data. Block hooks run in the whole
/// group, one link after the other.
template <class T, class X>
class Exchange {
 public:
  /// Prepares a collective over all links of the group.
  /// \param teams see link_teams()
  /// \param largest the longest share of this group
  /// \param stride the number of tiles on each link per tile of the shards
  /// \param positions see NearLinks. It is not a member: an array with a variable index is in local memory,
  /// and it would drag the whole object there.
  CHORALE_FN Exchange(const Group& group, const EndpointTable& table, uint32_t teams, const Leg& largest,
                      uint32_t stride, Positions& positions, const Deadline& deadline, X* extra)
      : group_(group),
        thread_(alone(group)),
        table_(table),
        deadline_(deadline),
        extra_(extra),
        links_(group, table, positions),
        teams_(teams),
        team_(link_team(group, teams_)),
        shape_(table.at(table.self, group.id), largest, 0, true) {
    shape_.stride = stride;
    each_link([&](int32_t peer) {
      // Links of a mesh may differ in depth.
      if (links_[peer].depth < 2 && (tiles() > 1 || stride > 1)) {
        refuse("a collective needs rings of at least two slots");
      }
      return Stop::none;
    });
  }

  CHORALE_FN uint64_t tiles() const { return shape_.tiles; }
  CHORALE_FN int32_t ranks() const { return table_.ranks; }
  CHORALE_FN int32_t self() const { return table_.self; }
  CHORALE_FN int32_t next(int32_t step) const { return (table_.self + step) % table_.ranks; }
  CHORALE_FN int32_t previous(int32_t step) const {
    return (table_.self + table_.ranks - step) % table_.ranks;
  }

  /// Makes a tile of each peer's leg and sends it there. `leg_of` returns the leg of a rank, here and below.
  template <class LegOf, class Produce>
  CHORALE_FN Stop send_each(const LegOf& leg_of, uint64_t tile, uint32_t phase, const Produce& produce) {
    const Stop stop = settle([&](int32_t peer) { return wait_free(peer, tile, phase); });
    if (stop != Stop::none) return stop;
    each_step<Produce>([&](const Group& by, int32_t step) {
      const int32_t peer = next(step);
      const Leg leg = leg_of(peer);
      const Progress at = to(peer, tile, phase);
      char* const region = staged_slot(links_[peer], at);
      move<Produce>(at.bytes(leg), [&] {
        Ctx<X> ctx = context(by, peer, leg, at, region);
        detail::produce<T>(by, leg, produce, ctx, at.offset(), at.bytes(leg), Mem(region));
      });
    });
    signal(leg_of, tile, phase);
    return Stop::none;
  }

  /// Makes a tile of `leg` once and sends it to all ranks. fill() gets its context and the sinks; this rank's
  /// own sink is the first.
  template <class Fill>
  CHORALE_FN Stop send_all(const Leg& leg, uint64_t tile, uint32_t phase, const Fill& fill) {
    const Stop stop = settle([&](int32_t peer) { return wait_free(peer, tile, phase); });
    if (stop != Stop::none) return stop;
    char* regions[most_ranks];
    stage_all(tile, phase, regions);
    const Progress at = to(self(), tile, phase);
    fill(context(group_, self(), leg, at, regions[0]), at, AllRegions{regions});
    signal([&](int32_t) { return leg; }, tile, phase);
    return Stop::none;
  }

  /// Takes the tile that each peer has sent.
  template <class LegOf, class Consume>
  CHORALE_FN Stop receive_each(const LegOf& leg_of, uint64_t tile, uint32_t phase, const Consume& consume) {
    const Stop stop = settle([&](int32_t peer) { return wait(peer, leg_of(peer), tile, phase); });
    if (stop != Stop::none) return stop;
    each_step<Consume>([&](const Group& by, int32_t step) {
      const int32_t peer = previous(step);
      const Leg leg = leg_of(peer);
      const Progress at = from(peer, tile, phase);
      const char* const region = landed_slot(links_[peer], at);
      move<Consume>(at.bytes(leg), [&] {
        const Ctx<X> ctx = context(by, peer, leg, at, region);
        detail::consume<T>(by, leg, consume, ctx, at.offset(), at.bytes(leg), Mem(region));
      });
    });
    free(tile, phase, !is_block_hook<Consume>);
    return Stop::none;
  }

  /// Waits for a tile of `leg` from all ranks and gives their sum, in rank order, to `consume`. Block hooks
  /// get it in this rank's own ring.
  template <ReduceOp Op, class Consume>
  CHORALE_FN Stop reduce(const Leg& leg, uint64_t tile, uint32_t phase, const Consume& consume) {
    const Stop stop = settle([&](int32_t peer) { return wait(peer, leg, tile, phase); });
    if (stop != Stop::none) return stop;
    char* regions[most_ranks];
    land_all(tile, phase, regions);
    const Progress at = from(self(), tile, phase);
    const uint64_t bytes = at.bytes(leg);
    char* const own = regions[self()];
    move<Consume>(bytes, [&] {
      const Ctx<X> ctx = context(group_, self(), leg, at, own);
      if constexpr (is_block_hook<Consume>) {
        transfer(group_, bytes, sum<Op>(regions), Mem(own));
        group_.sync();
        consume.consume(ctx, group_, TileIn{own, bytes});
      } else {
        transfer(group_, bytes, sum<Op>(regions), sink_of<T>(leg, consume, ctx, at.offset()));
      }
    });
    free(tile, phase, !is_block_hook<Consume>);
    return Stop::none;
  }

  /// Waits for a tile of `leg` from all ranks (phase 0) and sends their sum to all ranks (phase 1).
  template <ReduceOp Op>
  CHORALE_FN Stop reduce_and_send(const Leg& leg, uint64_t tile) {
    const Stop stop = settle([&](int32_t peer) {
      const Stop came = wait(peer, leg, tile, 0);
      return came != Stop::none ? came : wait_free(peer, tile, 1);
    });
    if (stop != Stop::none) return stop;
    char *sources[most_ranks], *sinks[most_ranks];
    land_all(tile, 0, sources);
    stage_all(tile, 1, sinks);
    transfer(group_, from(self(), tile, 0).bytes(leg), sum<Op>(sources),
             ManyAt<AllRegions>{{sinks}, uint32_t(ranks())});
    signal([&](int32_t) { return leg; }, tile, 1);
    each_link([&](int32_t peer) { return give_free(peer, tile, 0, true); });
    return Stop::none;
  }

  /// Waits until no peer still reads sent data from this rank's memory. Called when everything has been sent
  /// and received.
  CHORALE_FN Stop end() {
    return settle([&](int32_t peer) { return drain_link(thread_, links_[peer], deadline_); });
  }

 private:
  // These functions find where things are.

  CHORALE_FN Progress progress(uint64_t start, uint64_t tile, uint32_t phase) const {
    // All links make equally many steps, whatever the lengths of their shares. Tiles after the end of a share
    // are empty.
    Progress at = shape_;
    at.start = start;
    at.tile = tile;
    at.phase = phase;
    return at;
  }
  CHORALE_FN Progress to(int32_t peer, uint64_t tile, uint32_t phase) const {
    return progress(links_.sent(peer), tile, phase);
  }
  CHORALE_FN Progress from(int32_t peer, uint64_t tile, uint32_t phase) const {
    return progress(links_.received(peer), tile, phase);
  }
  /// Finds the regions to fill; they are indexed by step.
  CHORALE_FN void stage_all(uint64_t tile, uint32_t phase, char** regions) const {
    for (int32_t step = 0; step < ranks(); ++step) {
      const int32_t peer = next(step);
      regions[step] = staged_slot(links_[peer], to(peer, tile, phase));
    }
  }
  /// Finds the regions to read; they are indexed by rank.
  CHORALE_FN void land_all(uint64_t tile, uint32_t phase, char** regions) const {
    for (int32_t rank = 0; rank < ranks(); ++rank) {
      regions[rank] = const_cast<char*>(landed_slot(links_[rank], from(rank, tile, phase)));
    }
  }
  template <ReduceOp Op>
  CHORALE_FN ReducedAt<Op, T, AllRegions> sum(char* const* regions) const {
    const uint32_t n = uint32_t(ranks());
    return {{regions}, n, Op == ReduceOp::avg ? n : 0};
  }

  CHORALE_FN Ctx<X> context(const Group& by, int32_t peer, const Leg& leg, const Progress& at,
                            const char* region) const {
    const Endpoint& e = links_[peer];
    Ctx<X> ctx = detail::context(by, e, leg, at.tile_bytes, extra_);
    locate(ctx, e, leg, at, region, 0, at.bytes(leg));
    return ctx;
  }

  // These functions wait and signal.

  /// Calls f(peer) for each link, in one thread per link. Makes no more calls after a stop.
  template <class F>
  CHORALE_FN void each_link(const F& f) {
    for (uint32_t peer = group_.rank; peer < uint32_t(ranks()); peer += group_.size) {
      if (stop_ == Stop::none) stop_ = f(int32_t(peer));
    }
  }
  /// Does each_link() and returns the same verdict in all threads. The verdict includes earlier stops.
  /// Synchronises.
  template <class F>
  CHORALE_FN Stop settle(const F& f) {
    each_link(f);
    return stop_ = group_.agree(stop_);
  }

  /// Calls f(group, step) for each link whose data the calling thread moves. `group` is the group that moves
  /// it.
  template <class Hook, class F>
  CHORALE_FN void each_step(const F& f) const {
    if constexpr (is_block_hook<Hook>) {
      for (int32_t step = 0; step < ranks(); ++step) f(group_, step);
    } else {
      for (uint32_t step = group_.rank / team_.size; step < uint32_t(ranks()); step += teams_) {
        f(team_, int32_t(step));
      }
    }
  }

  /// Moves the data, if there is any. Synchronises after block hooks, because they may reuse their own memory
  /// in the next call.
  template <class Hook, class F>
  CHORALE_FN void move(uint64_t bytes, const F& f) const {
    if (bytes == 0) return;
    f();
    if (is_block_hook<Hook>) group_.sync();
  }

  CHORALE_FN Stop wait_free(int32_t peer, uint64_t tile, uint32_t phase) const {
    return await_free_slot(thread_, links_[peer], to(peer, tile, phase), deadline_);
  }

  CHORALE_FN Stop wait(int32_t peer, const Leg& leg, uint64_t tile, uint32_t phase) const {
    const Endpoint& e = links_[peer];
    const Progress at = from(peer, tile, phase);
    const uint64_t bytes = at.bytes(leg);
    const Stop stop = await_slot(thread_, e, at, bytes, deadline_);
    // For 0 bytes wait() has not waited, so the note may not have arrived.
    if (CHORALE_CHECKED && stop == Stop::none && tile == 0 && phase == 0 && bytes != 0) {
      check_note(thread_, e, leg, at);
    }
    return stop;
  }

  /// Makes a tile visible to each peer, after all threads have filled it.
  template <class LegOf>
  CHORALE_FN void signal(const LegOf& leg_of, uint64_t tile, uint32_t phase) {
    group_.sync();
    each_link([&](int32_t peer) {
      const Leg leg = leg_of(peer);
      const Progress at = to(peer, tile, phase);
      const uint64_t note = CHORALE_CHECKED && tile == 0 && phase == 0 ? at.note(leg, group_).word : 0;
      return signal_slot(thread_, links_[peer], at, at.bytes(leg), at.last(), note, deadline_);
    });
  }

  /// Allows each peer to write to a slot again, after all threads have read it.
  CHORALE_FN void free(uint64_t tile, uint32_t phase, bool stored) {
    group_.sync();
    each_link([&](int32_t peer) { return give_free(peer, tile, phase, stored); });
  }
  CHORALE_FN Stop give_free(int32_t peer, uint64_t tile, uint32_t phase, bool stored) const {
    const Progress at = from(peer, tile, phase);
    return free_slot(thread_, links_[peer], at, at.last(), stored, deadline_);
  }

  const Group& group_;
  const Group thread_;
  const EndpointTable& table_;
  const Deadline& deadline_;
  X* extra_;
  const NearLinks links_;
  const uint32_t teams_;
  const Group team_;
  Progress shape_;
  Stop stop_ = Stop::none;  ///< the calling thread's
};

/// Fills all sinks with a tile of `leg` that a hook makes.
template <class T, class Produce>
struct FillFromHook {
  const Group& group;
  const Leg& leg;
  const Produce& produce;
  int32_t ranks;

  template <class X>
  CHORALE_FN void operator()(const Ctx<X>& ctx, const Progress& at, const AllRegions& sinks) const {
    const uint64_t bytes = at.bytes(leg);
    if (bytes == 0) return;
    if constexpr (is_block_hook<Produce>) {
      // The hook makes the tile once, in this rank's own ring. It is copied from there to the others.
      detail::produce<T>(group, leg, produce, ctx, at.offset(), bytes, sinks(0));
      group.sync();
      transfer(group, bytes, Mem(static_cast<const char*>(sinks.regions[0])),
               ManyAt<AllRegions>{{sinks.regions + 1}, uint32_t(ranks - 1)});
    } else {
      detail::produce<T>(group, leg, produce, ctx, at.offset(), bytes,
                         ManyAt<AllRegions>{sinks, uint32_t(ranks)});
    }
  }
};
}  // namespace detail

/// Sends shard p of `in` to rank p. Data from rank p goes to shard p of `out`. `message` is one shard.
template <class T, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop all_to_all(const Group& group, const EndpointTable& table, const Leg& message,
                           const Shards& shards, const Produce& produce = {}, const Consume& consume = {},
                           const Deadline& deadline = {}, X* extra = nullptr) {
  const uint32_t teams = detail::teams_for(group, table, shards);
  const Leg leg = share_of(detail::typed<T>(message), group.id, group.count);
  const auto shard = [&](int32_t peer) { return detail::shard_of(leg, shards, peer); };
  if constexpr (detail::by_value<Produce, Consume>) {
    if (detail::goes_as_packets(group, table, leg.bytes, packet_bytes<LL16>(leg.bytes))) {
      return detail::all_to_all_as_packets<T>(group, table, teams, shard, produce, consume, deadline, extra);
    }
  }
  detail::Positions positions;
  detail::Exchange<T, X> exchange(group, table, teams, leg, 1, positions, deadline, extra);
  Stop stop = Stop::none;
  for (uint64_t tile = 0; tile <= exchange.tiles() && stop == Stop::none; ++tile) {
    if (tile < exchange.tiles()) stop = exchange.send_each(shard, tile, 0, produce);
    if (tile > 0 && stop == Stop::none) stop = exchange.receive_each(shard, tile - 1, 0, consume);
  }
  return stop != Stop::none ? stop : exchange.end();
}

/// Sends `in`, one shard, to all ranks. Data from rank p goes to shard p of `out`. A producer is called once
/// per element of `in`.
template <class T, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop all_gather(const Group& group, const EndpointTable& table, const Leg& message,
                           const Shards& shards, const Produce& produce = {}, const Consume& consume = {},
                           const Deadline& deadline = {}, X* extra = nullptr) {
  const uint32_t teams = detail::teams_for(group, table, shards);
  const Leg leg = share_of(detail::typed<T>(message), group.id, group.count);
  const auto shard = [&](int32_t peer) { return detail::shard_of(leg, {0, shards.out}, peer); };
  Leg own = leg;
  own.shard = uint32_t(table.self);
  if constexpr (detail::by_value<Produce, Consume>) {
    if (detail::goes_as_packets(group, table, leg.bytes, packet_bytes<LL16>(leg.bytes))) {
      return detail::all_gather_as_packets<T>(group, table, teams, own, shard, produce, consume, deadline,
                                              extra);
    }
  }
  detail::Positions positions;
  detail::Exchange<T, X> exchange(group, table, teams, leg, 1, positions, deadline, extra);
  const detail::FillFromHook<T, Produce> fill{group, own, produce, table.ranks};
  Stop stop = Stop::none;
  for (uint64_t tile = 0; tile <= exchange.tiles() && stop == Stop::none; ++tile) {
    if (tile < exchange.tiles()) stop = exchange.send_all(own, tile, 0, fill);
    if (tile > 0 && stop == Stop::none) stop = exchange.receive_each(shard, tile - 1, 0, consume);
  }
  return stop != Stop::none ? stop : exchange.end();
}

/// Combines shard p of all ranks' `in` at rank p, in rank order. The result goes to `out`, one shard.
/// `message` is one shard.
template <ReduceOp Op, class T, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop reduce_scatter(const Group& group, const EndpointTable& table, const Leg& message,
                               const Shards& shards, const Produce& produce = {}, const Consume& consume = {},
                               const Deadline& deadline = {}, X* extra = nullptr) {
  const uint32_t teams = detail::link_teams(group, table.ranks);
  const Leg leg = share_of(detail::typed<T>(message), group.id, group.count);
  const auto shard = [&](int32_t peer) { return detail::shard_of(leg, {shards.in, 0}, peer); };
  Leg own = leg;
  own.shard = uint32_t(table.self);
  if constexpr (detail::by_value<Produce, Consume>) {
    if (detail::goes_as_packets(group, table, leg.bytes, packet_bytes<LL16>(leg.bytes))) {
      return detail::reduce_scatter_as_packets<Op, T>(group, table, teams, own, shard, produce, consume,
                                                      deadline, extra);
    }
  }
  detail::Positions positions;
  detail::Exchange<T, X> exchange(group, table, teams, leg, 1, positions, deadline, extra);
  Stop stop = Stop::none;
  for (uint64_t tile = 0; tile <= exchange.tiles() && stop == Stop::none; ++tile) {
    if (tile < exchange.tiles()) stop = exchange.send_each(shard, tile, 0, produce);
    if (tile > 0 && stop == Stop::none) stop = exchange.template reduce<Op>(own, tile - 1, 0, consume);
  }
  return stop != Stop::none ? stop : exchange.end();
}

/// Combines `in` of all ranks in rank order. The result goes to `out` on every rank. `message` is the whole
/// message. Each rank combines a share of it, which is whole tiles if the Leg has tile_bytes.
template <ReduceOp Op, class T, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop all_reduce(const Group& group, const EndpointTable& table, const Leg& message,
                           const Produce& produce = {}, const Consume& consume = {},
                           const Deadline& deadline = {}, X* extra = nullptr) {
  const uint32_t teams = detail::link_teams(group, table.ranks);
  const detail::SharesOfShards share(detail::typed<T>(message), uint32_t(table.ranks), group.id, group.count);
  const Leg longest = share(0);
  if constexpr (detail::by_value<Produce, Consume>) {
    if (detail::goes_as_packets(group, table, longest.bytes,
                                detail::slots_of_all_reduce(table.ranks, longest.bytes))) {
      return detail::all_reduce_as_packets<Op, T>(group, table, teams, share, longest.bytes, produce, consume,
                                                  deadline, extra);
    }
  }
  // Two kinds of tiles alternate on each link: parts and sums.
  detail::Positions positions;
  detail::Exchange<T, X> exchange(group, table, teams, longest, 2, positions, deadline, extra);
  const Leg own = share(table.self);
  Stop stop = Stop::none;
  for (uint64_t tile = 0; tile <= exchange.tiles() && stop == Stop::none; ++tile) {
    if (tile < exchange.tiles()) stop = exchange.send_each(share, tile, 0, produce);
    if (tile > 0 && stop == Stop::none) stop = exchange.receive_each(share, tile - 1, 1, consume);
    if (tile < exchange.tiles() && stop == Stop::none) {
      stop = exchange.template reduce_and_send<Op>(own, tile);
    }
  }
  return stop != Stop::none ? stop : exchange.end();
}

}  // namespace chorale
