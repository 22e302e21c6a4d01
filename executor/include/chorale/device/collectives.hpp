#pragma once
// Collectives over an EndpointTable, with hooks, as parts of kernels. Each group does its share of every
// shard over the channel of its id, and sends tile s before it takes tile s - 1, so rings need two slots.
// Links of all kinds may be mixed. A rank's own shard goes through its ring to itself.
//
// A shard is what one rank sends to another; `leg` describes the first, for all groups together, and Shards
// how far the others are from it. Results are the same bits in every run: sums are made in rank order.

#include <cstdint>
#include <type_traits>

#include "chorale/device/link_teams.hpp"
#include "chorale/device/packet_collectives.hpp"
#include "chorale/device/reduce.hpp"
#include "chorale/device/tiles.hpp"

namespace chorale {

/// Bytes between a shard and the next in the Leg's `in` and `out`.
struct Shards {
  uint64_t in = 0, out = 0;
};

namespace detail {

/// `group`'s share of shard `of`.
CHORALE_FN Leg shard_of(Leg leg, const Shards& shards, int32_t of) {
  leg.in = static_cast<const char*>(leg.in) + uint64_t(of) * shards.in;
  leg.out = static_cast<char*>(leg.out) + uint64_t(of) * shards.out;
  leg.shard = uint32_t(of);
  return leg;
}

/// One tile at one end of a link, for collectives: what Sender and Receiver do, in pieces.
template <class X>
class TileEnd {
 public:
  CHORALE_FN TileEnd(const Group& group, const EndpointTable& table, int32_t peer, const Leg& leg,
                     const Progress& progress, X* extra)
      : group(group), e(table.at(peer, group.id)), leg(leg), at(progress), ctx_(extra) {}

  CHORALE_FN uint64_t bytes() const { return at.bytes(leg); }

  CHORALE_FN Ctx<X> context(const char* region) const {
    Ctx<X> ctx = detail::context(group, e, leg, at.tile_bytes, ctx_);
    locate(ctx, e, leg, at, region, 0, bytes());
    return ctx;
  }

  // Sending.
  CHORALE_FN char* stage() const {
    return with_link(e, [&](auto fabric) { return decltype(fabric)::stage(e, at.position()); });
  }
  CHORALE_FN Stop wait_free(const Deadline& deadline) const {
    const uint64_t behind = at.position() + at.slot, upto = behind > e.window ? behind - e.window : 0;
    return with_link(e, [&](auto fabric) { return decltype(fabric)::wait_free(group, e, upto, deadline); });
  }
  CHORALE_FN Stop signal(const Deadline& deadline) const {
    const uint64_t position = at.position();
    const uint64_t note = CHORALE_CHECKED && at.tile == 0 && at.phase == 0 ? at.note(leg, group).word : 0;
    return with_link(e, [&](auto fabric) {
      using Ops = decltype(fabric);
      return signal_and_advance<Ops>(group, at.last(), &e.local->cursor.sent, at.end(), [&] {
        return Ops::signal(group, e, position, position + units_of(bytes()) * unit_bytes, note, deadline);
      });
    });
  }

  // Receiving.
  CHORALE_FN const char* land() const {
    return with_link(e, [&](auto fabric) { return decltype(fabric)::land(e, at.position()); });
  }
  CHORALE_FN Stop wait(const Deadline& deadline) const {
    const uint64_t upto = at.position() + units_of(bytes()) * unit_bytes;
    const Stop stop =
        with_link(e, [&](auto fabric) { return decltype(fabric)::wait(group, e, upto, deadline); });
    if (CHORALE_CHECKED && stop == Stop::none && at.tile == 0 && at.phase == 0) check_note(group, e, leg, at);
    return stop;
  }
  CHORALE_FN Stop signal_free(const Deadline& deadline, bool stored) const {
    const uint64_t upto = at.position() + at.slot;
    return with_link(e, [&](auto fabric) {
      using Ops = decltype(fabric);
      return signal_and_advance<Ops>(group, at.last(), &e.local->cursor.received, at.end(),
                                     [&] { return Ops::signal_free(group, e, upto, deadline, stored); });
    });
  }

  const Group& group;
  const Endpoint& e;
  const Leg leg;
  const Progress at;

 private:
  X* ctx_;
};

/// Waits until nothing of what the group has sent is read from this rank's memory any more.
CHORALE_FN Stop drain_links(const Group& group, const EndpointTable& table, const Deadline& deadline) {
  for (int32_t rank = 0; rank < table.ranks; ++rank) {
    const Endpoint& e = table.at(rank, group.id);
    const Stop stop = with_link(e, [&](auto fabric) { return decltype(fabric)::drain(group, e, deadline); });
    if (stop != Stop::none) return stop;
  }
  return Stop::none;
}

/// What the group does in a collective, over all links.
template <class T, class X>
class Exchange {
 public:
  /// `largest`: a share of this group that none of its others is longer than. `stride`: tiles on each link
  /// for a tile of the shards.
  CHORALE_FN Exchange(const Group& group, const EndpointTable& table, const Leg& largest, uint32_t stride,
                      const Deadline& deadline, X* extra)
      : group_(group), table_(table), deadline_(deadline), extra_(extra), largest_(largest), stride_(stride) {
    if (table.ranks > most_ranks) refuse("a collective of more ranks than there may be");
    const Endpoint& e = table.at(table.self, group.id);
    tiles_ = Progress(e, largest, 0, true).tiles;
    // Links of a mesh differ in depth.
    for (int32_t peer = 0; peer < table.ranks && (tiles_ > 1 || stride > 1); ++peer) {
      if (table.at(peer, group.id).depth < 2) refuse("a collective needs rings of two slots at least");
    }
  }

  CHORALE_FN uint64_t tiles() const { return tiles_; }
  CHORALE_FN int32_t ranks() const { return table_.ranks; }
  CHORALE_FN int32_t self() const { return table_.self; }
  CHORALE_FN int32_t next(int32_t step) const { return (table_.self + step) % table_.ranks; }
  CHORALE_FN int32_t previous(int32_t step) const {
    return (table_.self + table_.ranks - step) % table_.ranks;
  }

  CHORALE_FN TileEnd<X> to(int32_t peer, const Leg& leg, uint64_t tile, uint32_t phase = 0) const {
    return end(peer, leg, tile, phase, load_relaxed(&table_.at(peer, group_.id).local->cursor.sent));
  }
  CHORALE_FN TileEnd<X> from(int32_t peer, const Leg& leg, uint64_t tile, uint32_t phase = 0) const {
    return end(peer, leg, tile, phase, load_relaxed(&table_.at(peer, group_.id).local->cursor.received));
  }

  /// Makes a tile of `leg` and sends it to one peer.
  template <class Produce>
  CHORALE_FN Stop send(int32_t peer, const Leg& leg, uint64_t tile, uint32_t phase,
                       const Produce& produce) const {
    const TileEnd<X> there = to(peer, leg, tile, phase);
    const Stop stop = there.wait_free(deadline_);
    if (stop != Stop::none) return stop;
    char* const region = there.stage();
    Ctx<X> ctx = there.context(region);
    detail::produce<T>(group_, leg, produce, ctx, there.at.offset(), there.bytes(), Mem(region));
    return there.signal(deadline_);
  }

  /// Makes a tile of `leg` once and sends it to everybody: what a source gives, or a hook. Who fills is told
  /// of this rank's own end as it was before the waits: the leader advances it as soon as it has filled.
  template <class Fill>
  CHORALE_FN Stop send_all(const Leg& leg, uint64_t tile, uint32_t phase, const Fill& fill) const {
    const TileEnd<X> own = to(self(), leg, tile, phase);
    Mem sinks[most_ranks];
    for (int32_t step = 0; step < ranks(); ++step) {
      const TileEnd<X> there = to(next(step), leg, tile, phase);
      const Stop stop = there.wait_free(deadline_);
      if (stop != Stop::none) return stop;
      sinks[step] = Mem(there.stage());  // this rank's own first
    }
    fill(own, sinks);
    for (int32_t step = 0; step < ranks(); ++step) {
      const Stop stop = to(next(step), leg, tile, phase).signal(deadline_);
      if (stop != Stop::none) return stop;
    }
    return Stop::none;
  }

  /// Takes a tile of `leg` that one peer has sent.
  template <class Consume>
  CHORALE_FN Stop receive(int32_t peer, const Leg& leg, uint64_t tile, uint32_t phase,
                          const Consume& consume) const {
    const TileEnd<X> here = from(peer, leg, tile, phase);
    Stop stop = here.wait(deadline_);
    if (stop != Stop::none) return stop;
    const char* const region = here.land();
    const Ctx<X> ctx = here.context(region);
    detail::consume<T>(group_, leg, consume, ctx, here.at.offset(), here.bytes(), Mem(region));
    return here.signal_free(deadline_, !is_block_hook<Consume>);
  }

  /// Waits for a tile of `leg` from everybody, and gives use() the sum of them, in rank order, and this
  /// rank's own end, as send_all() does. `stored`: all that use() reads it has stored.
  template <ReduceOp Op, class Use>
  CHORALE_FN Stop reduce(const Leg& leg, uint64_t tile, uint32_t phase, bool stored, const Use& use) const {
    const TileEnd<X> own = from(self(), leg, tile, phase);
    Mem regions[most_ranks];
    for (int32_t rank = 0; rank < ranks(); ++rank) {
      const TileEnd<X> here = from(rank, leg, tile, phase);
      const Stop stop = here.wait(deadline_);
      if (stop != Stop::none) return stop;
      regions[rank] = Mem(here.land());
    }
    const uint32_t n = uint32_t(ranks());
    const Stop used = use(Reduced<Op, T>{regions[0], regions + 1, n - 1, Op == ReduceOp::avg ? n : 0}, own);
    if (used != Stop::none) return used;
    for (int32_t rank = 0; rank < ranks(); ++rank) {
      const Stop stop = from(rank, leg, tile, phase).signal_free(deadline_, stored);
      if (stop != Stop::none) return stop;
    }
    return Stop::none;
  }

  CHORALE_FN Stop drain() const { return drain_links(group_, table_, deadline_); }

 private:
  CHORALE_FN TileEnd<X> end(int32_t peer, const Leg& leg, uint64_t tile, uint32_t phase,
                            uint64_t position) const {
    const Endpoint& e = table_.at(peer, group_.id);
    // All links make as many steps, whatever the lengths of their shares: tiles behind a share's end are
    // empty.
    Progress progress(e, largest_, position, true);
    progress.tiles = tiles_;
    progress.tile = tile;
    progress.stride = stride_;
    progress.phase = phase;
    return TileEnd<X>(group_, table_, peer, leg, progress, extra_);
  }

  const Group& group_;
  const EndpointTable& table_;
  const Deadline& deadline_;
  X* extra_;
  const Leg largest_;
  const uint32_t stride_;
  uint64_t tiles_ = 0;
};

/// Fills all sinks with what a hook makes of a tile of `leg`.
template <class T, class Produce, class X>
struct FillFromHook {
  const Group& group;
  const Leg& leg;
  const Produce& produce;
  int32_t ranks;

  CHORALE_FN void operator()(const TileEnd<X>& own, const Mem* sinks) const {
    const Ctx<X> ctx = own.context(sinks[0].data);
    if constexpr (is_block_hook<Produce>) {
      // Once, into this rank's own ring, and from there to the others.
      detail::produce<T>(group, leg, produce, ctx, own.at.offset(), own.bytes(), sinks[0]);
      group.sync();
      transfer(group, own.bytes(), Mem(static_cast<const char*>(sinks[0].data)),
               Many<Mem>{sinks + 1, uint32_t(ranks - 1)});
    } else {
      detail::produce<T>(group, leg, produce, ctx, own.at.offset(), own.bytes(),
                         Many<Mem>{sinks, uint32_t(ranks)});
    }
  }
};
}  // namespace detail

/// Shard p of `in` goes to rank p; what rank p sent comes to shard p of `out`.
template <class T, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop all_to_all(const Group& group, const EndpointTable& table, const Leg& message,
                           const Shards& shards, const Produce& produce = {}, const Consume& consume = {},
                           const Deadline& deadline = {}, X* extra = nullptr) {
  const Leg leg = share_of(detail::typed<T>(message), group.id, group.count);
  const auto shard = [&](int32_t peer) { return detail::shard_of(leg, shards, peer); };
  if constexpr (detail::by_value<Produce, Consume>) {
    if (detail::goes_as_packets(group, table, leg.bytes, packet_bytes<LL16>(leg.bytes))) {
      return detail::all_to_all_as_packets<T>(group, table, shard, produce, consume, deadline, extra);
    }
  }
  const detail::Exchange<T, X> exchange(group, table, leg, 1, deadline, extra);
  for (uint64_t tile = 0; tile <= exchange.tiles(); ++tile) {
    for (int32_t step = 0; step < table.ranks && tile < exchange.tiles(); ++step) {
      const int32_t peer = exchange.next(step);
      const Stop stop = exchange.send(peer, shard(peer), tile, 0, produce);
      if (stop != Stop::none) return stop;
    }
    for (int32_t step = 0; step < table.ranks && tile > 0; ++step) {
      const int32_t peer = exchange.previous(step);
      const Stop stop = exchange.receive(peer, shard(peer), tile - 1, 0, consume);
      if (stop != Stop::none) return stop;
    }
  }
  return exchange.drain();
}

/// `in`, one shard, goes to everybody; what rank p sent comes to shard p of `out`. A producer is asked once
/// for each of its elements.
template <class T, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop all_gather(const Group& group, const EndpointTable& table, const Leg& message,
                           const Shards& shards, const Produce& produce = {}, const Consume& consume = {},
                           const Deadline& deadline = {}, X* extra = nullptr) {
  const Leg leg = share_of(detail::typed<T>(message), group.id, group.count);
  const auto shard = [&](int32_t peer) { return detail::shard_of(leg, {0, shards.out}, peer); };
  Leg own = leg;
  own.shard = uint32_t(table.self);
  if constexpr (detail::by_value<Produce, Consume>) {
    if (detail::goes_as_packets(group, table, leg.bytes, packet_bytes<LL16>(leg.bytes))) {
      return detail::all_gather_as_packets<T>(group, table, own, shard, produce, consume, deadline, extra);
    }
  }
  const detail::Exchange<T, X> exchange(group, table, leg, 1, deadline, extra);
  const detail::FillFromHook<T, Produce, X> fill{group, own, produce, table.ranks};
  for (uint64_t tile = 0; tile <= exchange.tiles(); ++tile) {
    if (tile < exchange.tiles()) {
      const Stop stop = exchange.send_all(own, tile, 0, fill);
      if (stop != Stop::none) return stop;
    }
    for (int32_t step = 0; step < table.ranks && tile > 0; ++step) {
      const int32_t peer = exchange.previous(step);
      const Stop stop = exchange.receive(peer, shard(peer), tile - 1, 0, consume);
      if (stop != Stop::none) return stop;
    }
  }
  return exchange.drain();
}

namespace detail {
/// Gives what a source makes to a consuming hook; block hooks get it in this rank's own ring.
template <class T, class X, class Source, class Consume>
CHORALE_FN Stop consume_source(const Group& group, const Leg& leg, const TileEnd<X>& own,
                               const Source& source, const Consume& consume) {
  char* const region = const_cast<char*>(own.land());
  const Ctx<X> ctx = own.context(region);
  if constexpr (is_block_hook<Consume>) {
    const Stop stop = transfer(group, own.bytes(), source, Mem(region));
    if (stop != Stop::none) return stop;
    group.sync();
    consume.consume(ctx, group, TileIn{region, own.bytes()});
    return Stop::none;
  } else {
    return transfer(group, own.bytes(), source, sink_of<T>(leg, consume, ctx, own.at.offset()));
  }
}
}  // namespace detail

/// Shard p of everybody's `in` is combined at rank p, in rank order, and comes to `out`, one shard.
template <ReduceOp Op, class T, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop reduce_scatter(const Group& group, const EndpointTable& table, const Leg& message,
                               const Shards& shards, const Produce& produce = {}, const Consume& consume = {},
                               const Deadline& deadline = {}, X* extra = nullptr) {
  const Leg leg = share_of(detail::typed<T>(message), group.id, group.count);
  const auto shard = [&](int32_t peer) { return detail::shard_of(leg, {shards.in, 0}, peer); };
  Leg own = leg;
  own.shard = uint32_t(table.self);
  if constexpr (detail::by_value<Produce, Consume>) {
    if (detail::goes_as_packets(group, table, leg.bytes, packet_bytes<LL16>(leg.bytes))) {
      return detail::reduce_scatter_as_packets<Op, T>(group, table, own, shard, produce, consume, deadline,
                                                      extra);
    }
  }
  const detail::Exchange<T, X> exchange(group, table, leg, 1, deadline, extra);
  for (uint64_t tile = 0; tile <= exchange.tiles(); ++tile) {
    for (int32_t step = 0; step < table.ranks && tile < exchange.tiles(); ++step) {
      const int32_t peer = exchange.next(step);
      const Stop stop = exchange.send(peer, shard(peer), tile, 0, produce);
      if (stop != Stop::none) return stop;
    }
    if (tile == 0) continue;
    const Stop stop = exchange.template reduce<Op>(
        own, tile - 1, 0, !is_block_hook<Consume>, [&](const auto& sum, const auto& end) {
          return detail::consume_source<T>(group, own, end, sum, consume);
        });
    if (stop != Stop::none) return stop;
  }
  return exchange.drain();
}

/// `in` of all ranks, combined in rank order, comes to everybody's `out`. `message` is all of it; ranks
/// combine shares of it that are whole tiles where the Leg has tile_bytes.
template <ReduceOp Op, class T, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop all_reduce(const Group& group, const EndpointTable& table, const Leg& message,
                           const Produce& produce = {}, const Consume& consume = {},
                           const Deadline& deadline = {}, X* extra = nullptr) {
  const Leg whole = detail::typed<T>(message);
  const auto share = [&](int32_t rank) {
    Leg shard = share_of(whole, uint32_t(rank), uint32_t(table.ranks));
    shard.shard = uint32_t(rank);
    return share_of(shard, group.id, group.count);
  };
  const Leg longest = share(0);
  if constexpr (detail::by_value<Produce, Consume>) {
    if (detail::goes_as_packets(group, table, longest.bytes,
                                detail::slots_of_all_reduce(table.ranks, longest.bytes))) {
      return detail::all_reduce_as_packets<Op, T>(group, table, share, longest.bytes, produce, consume,
                                                  deadline, extra);
    }
  }
  // On each link tiles of two kinds take turns: parts, and sums.
  const detail::Exchange<T, X> exchange(group, table, longest, 2, deadline, extra);
  const Leg own = share(table.self);
  Stop stop = Stop::none;
  const auto gather = [&](uint64_t tile) {
    for (int32_t step = 0; step < table.ranks && stop == Stop::none; ++step) {
      const int32_t peer = exchange.previous(step);
      stop = exchange.receive(peer, share(peer), tile, 1, consume);
    }
  };
  for (uint64_t tile = 0; tile < exchange.tiles(); ++tile) {
    for (int32_t step = 0; step < table.ranks && stop == Stop::none; ++step) {
      const int32_t peer = exchange.next(step);
      stop = exchange.send(peer, share(peer), tile, 0, produce);
    }
    if (tile > 0 && stop == Stop::none) gather(tile - 1);
    if (stop != Stop::none) return stop;
    stop = exchange.template reduce<Op>(own, tile, 0, true, [&](const auto& sum, const auto&) {
      return exchange.send_all(own, tile, 1, [&](const detail::TileEnd<X>& end, const Mem* sinks) {
        transfer(group, end.bytes(), sum, Many<Mem>{sinks, uint32_t(table.ranks)});
      });
    });
    if (stop != Stop::none) return stop;
  }
  if (exchange.tiles() != 0) gather(exchange.tiles() - 1);
  return stop != Stop::none ? stop : exchange.drain();
}

}  // namespace chorale
