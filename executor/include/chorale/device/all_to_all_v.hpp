#pragma once
// An all-to-all whose counts lie in memory that the kernel reads: what an earlier kernel, a router of tokens
// say, has just found. The host knows none of them, so a launch in a CUDA graph is replayed with others.
//
// To each peer a group sends its count in a slot of its own, then its share of the data. Slot s goes to all
// peers before slot s - 1 is taken from any: what a group waits for is an earlier step of a peer, however
// many steps each makes, so rings of two slots are enough.

#include <cstdint>
#include <type_traits>

#include "chorale/device/collectives.hpp"

namespace chorale {

/// How much each rank gets, and where it lies. Arrays have a number for each rank; they stay as they are
/// until the kernel ends. What is counted are runs of `each` elements: rows, tokens.
///
/// What comes and does not fit, by `most` or by `room`, is dropped: no hook sees it. `received` tells of it.
template <class N = int64_t>
struct Counts {
  const N* send = nullptr;        ///< how much goes to each rank; refused if negative
  const N* send_at = nullptr;     ///< where that begins in `in`; null: one behind the other
  N* received = nullptr;          ///< written: how much each rank has sent; null: not wanted
  const N* receive_at = nullptr;  ///< where that begins in `out`; null: what is kept, one behind the other
  uint64_t each = 1;              ///< elements that are counted as one
  uint64_t most = unlimited;      ///< that are kept of each rank
  uint64_t room = unlimited;      ///< that `out` holds
};

namespace detail {

/// What a group sends first.
struct alignas(unit_bytes) CountNote {
  uint64_t count;
  uint64_t kind;  ///< of what, and of how many groups: the same at both ends
};
static_assert(sizeof(CountNote) == unit_bytes);

/// What the group does in an all_to_all_v(), over all links. How much has come of each rank, `came`, is no
/// member: what is looked up by a number is in memory, and all else here would be, too.
template <class T, class N, class X>
class CountedExchange {
 public:
  CHORALE_FN CountedExchange(const Group& group, const EndpointTable& table, const Leg& message,
                             const Counts<N>& counts, const Deadline& deadline, X* extra)
      : group_(group),
        table_(table),
        message_(typed<T>(message)),
        counts_(counts),
        deadline_(deadline),
        extra_(extra) {
    if (table.ranks > most_ranks) refuse("a collective of more ranks than there may be");
    if (counts.each == 0) refuse("runs of 0 elements are counted");
  }

  template <class Produce, class Consume>
  CHORALE_FN Stop run(const Produce& produce, const Consume& consume) const {
    uint64_t came[most_ranks];
    const uint64_t to_send = slots_to_send();
    uint64_t to_take = 1;  // as far as is known
    for (uint64_t slot = 0; slot < to_send || slot <= to_take; ++slot) {
      for (int32_t step = 0; step < table_.ranks && slot < to_send; ++step) {
        const Stop stop = send((table_.self + step) % table_.ranks, slot, produce);
        if (stop != Stop::none) return stop;
      }
      if (slot == 0) continue;
      for (int32_t step = 0; step < table_.ranks && slot <= to_take; ++step) {
        const Stop stop = take((table_.self + table_.ranks - step) % table_.ranks, slot - 1, came, consume);
        if (stop != Stop::none) return stop;
      }
      if (slot == 1) to_take = slots_to_take(came);  // the counts are here
    }
    return drain_links(group_, table_, deadline_);
  }

 private:
  /// This group's part of one shard, on one link.
  struct Part {
    Leg leg;
    uint64_t first;  ///< of the shard, in all that is sent or kept, in elements
    Progress at;     ///< begins behind the slot of the count

    /// Goes to a slot; whether there is one. That of the count is the one before tile 0: position() wraps.
    CHORALE_FN bool go_to(uint64_t slot) {
      at.tile = slot - 1;
      return slot <= at.tiles;
    }
    CHORALE_FN uint64_t end_of(uint64_t slot) const {
      return at.position() + units_of(slot == 0 ? unit_bytes : at.bytes(leg)) * unit_bytes;
    }
  };

  CHORALE_FN uint64_t count_to(int32_t peer) const {
    const N count = counts_.send[peer];
    if constexpr (std::is_signed_v<N>) {
      if (count < 0) refuse_count(peer, int64_t(count));
    }
    return uint64_t(count);
  }

  /// `count` runs that begin `at` runs into a buffer.
  CHORALE_FN Part part(const Endpoint& e, uint64_t count, uint64_t at, uint64_t start) const {
    Leg shard = message_;
    shard.bytes = count * counts_.each * message_.elem;
    shard.shard = uint32_t(e.peer);
    const Leg leg = share_of(shard, group_.id, group_.count);
    return {leg, at * counts_.each, Progress(e, leg, start + e.slot_bytes(), true)};
  }

  CHORALE_FN uint64_t slots_to_send() const {
    uint64_t slots = 0;
    for (int32_t peer = 0; peer < table_.ranks; ++peer) {
      const Endpoint& e = table_.at(peer, group_.id);
      if (e.depth < 2) refuse("all_to_all_v() needs rings of two slots at least");
      const uint64_t tiles = part(e, count_to(peer), 0, 0).at.tiles;
      slots = tiles + 1 > slots ? tiles + 1 : slots;
    }
    return slots;
  }
  CHORALE_FN uint64_t slots_to_take(const uint64_t* came) const {
    uint64_t slots = 0;
    for (int32_t peer = 0; peer < table_.ranks; ++peer) {
      const uint64_t tiles = part(table_.at(peer, group_.id), came[peer], 0, 0).at.tiles;
      slots = tiles + 1 > slots ? tiles + 1 : slots;
    }
    return slots;
  }

  template <class Produce>
  CHORALE_FN Stop send(int32_t peer, uint64_t slot, const Produce& produce) const {
    const Endpoint& e = table_.at(peer, group_.id);
    const uint64_t count = count_to(peer);
    uint64_t at = 0;
    if (counts_.send_at) {
      at = uint64_t(counts_.send_at[peer]);
    } else {
      for (int32_t before = 0; before < peer; ++before) at += count_to(before);
    }
    Part part = this->part(e, count, at, load_relaxed(&e.local->cursor.sent));
    if (!part.go_to(slot)) return Stop::none;
    if (part.leg.in) part.leg.in = static_cast<const char*>(part.leg.in) + part.first * message_.elem;

    const TileEnd<X> there(group_, table_, peer, part.leg, part.at, extra_);
    const Stop stop = there.wait_free(deadline_);
    if (stop != Stop::none) return stop;
    char* const region = there.stage();
    if (slot == 0) {
      if (group_.leader()) tell(region, {count, kind()});
    } else {
      Ctx<X> ctx = there.context(region);
      ctx.first = part.first;
      detail::produce<T>(group_, part.leg, produce, ctx, there.at.offset(), there.bytes(), Mem(region));
    }
    const uint64_t begin = part.at.position(), end = part.end_of(slot);
    return with_link(e, [&](auto fabric) {
      using Ops = decltype(fabric);
      return signal_and_advance<Ops>(group_, slot == part.at.tiles, &e.local->cursor.sent, part.at.end(),
                                     [&] { return Ops::signal(group_, e, begin, end, 0, deadline_); });
    });
  }

  template <class Consume>
  CHORALE_FN Stop take(int32_t peer, uint64_t slot, uint64_t* came, const Consume& consume) const {
    const Endpoint& e = table_.at(peer, group_.id);
    const uint64_t start = load_relaxed(&e.local->cursor.received);
    Part part = this->part(e, slot == 0 ? 0 : came[peer], slot == 0 ? 0 : begin_of(peer, came), start);
    if (!part.go_to(slot)) return Stop::none;
    const uint64_t begin = part.at.position(), end = part.end_of(slot);
    const Stop stop =
        with_link(e, [&](auto fabric) { return decltype(fabric)::wait(group_, e, end, deadline_); });
    if (stop != Stop::none) return stop;
    const char* const region = with_link(e, [&](auto fabric) { return decltype(fabric)::land(e, begin); });
    if (slot == 0) {
      came[peer] = hear(e, region);
      part = this->part(e, came[peer], 0, start);
      if (counts_.received && group_.id == 0 && group_.leader()) counts_.received[peer] = N(came[peer]);
    } else {
      keep(peer, e, part, came, region, consume);
    }
    return with_link(e, [&](auto fabric) {
      using Ops = decltype(fabric);
      return signal_and_advance<Ops>(
          group_, slot == part.at.tiles, &e.local->cursor.received, part.at.end(),
          [&] { return Ops::signal_free(group_, e, begin + part.at.slot, deadline_); });
    });
  }

  /// Gives the hook what fits of a tile.
  template <class Consume>
  CHORALE_FN void keep(int32_t peer, const Endpoint& e, Part& part, const uint64_t* came, const char* region,
                       const Consume& consume) const {
    const uint64_t at = begin_of(peer, came), room = at < counts_.room ? counts_.room - at : 0;
    const uint64_t kept = kept_of(peer, came), run = counts_.each * message_.elem;
    const uint64_t limit = (kept < room ? kept : room) * run, done = part.leg.begin + part.at.offset();
    const uint64_t left = done < limit ? limit - done : 0;
    const uint64_t bytes = left < part.at.bytes(part.leg) ? left : part.at.bytes(part.leg);
    if (bytes == 0) return;
    if (part.leg.out) part.leg.out = static_cast<char*>(part.leg.out) + part.first * message_.elem;
    Ctx<X> ctx = detail::context(group_, e, part.leg, part.at.tile_bytes, extra_);
    locate(ctx, e, part.leg, part.at, region, 0, bytes);
    ctx.first = part.first;
    detail::consume<T>(group_, part.leg, consume, ctx, part.at.offset(), bytes, Mem(region));
  }

  CHORALE_FN uint64_t kept_of(int32_t peer, const uint64_t* came) const {
    return came[peer] < counts_.most ? came[peer] : counts_.most;
  }
  CHORALE_FN uint64_t begin_of(int32_t peer, const uint64_t* came) const {
    if (counts_.receive_at) return uint64_t(counts_.receive_at[peer]);
    uint64_t at = 0;
    for (int32_t before = 0; before < peer; ++before) at += kept_of(before, came);
    return at;
  }

  // The slot of the count.
  CHORALE_FN uint64_t kind() const {
    return uint64_t(group_.count) << 48 | (counts_.each * message_.elem & ((uint64_t(1) << 48) - 1));
  }
  CHORALE_FN void tell(char* region, const CountNote& note) const {
    Unit unit;
    std::memcpy(&unit, &note, unit_bytes);
    store_unit(region, unit);
  }
  CHORALE_FN uint64_t hear(const Endpoint& e, const char* region) const {
    const Unit unit = load_unit(region);
    CountNote note;
    std::memcpy(&note, &unit, unit_bytes);
    if (note.kind != kind()) refuse_kind(e, note);
    return note.count;
  }

#if defined(__CUDACC__)
  CHORALE_FN void refuse_count(int32_t, int64_t) const { refuse("a count is negative"); }
  CHORALE_FN void refuse_kind(const Endpoint&, const CountNote&) const {
    refuse("the sender counts something else");
  }
#else
  void refuse_count(int32_t peer, int64_t count) const {
    refuse("all_to_all_v(): rank " + std::to_string(table_.self) + " has a count of " +
           std::to_string(count) + " for rank " + std::to_string(peer));
  }
  void refuse_kind(const Endpoint& e, const CountNote& note) const {
    const auto words = [](uint64_t kind) {
      return std::to_string(kind & ((uint64_t(1) << 48) - 1)) + " bytes, in " + std::to_string(kind >> 48) +
             " groups";
    };
    refuse("all_to_all_v(): over channel " + std::to_string(e.channel) + " rank " + std::to_string(e.peer) +
           " counts runs of " + words(note.kind) + ", and rank " + std::to_string(e.self) + " runs of " +
           words(kind()) + "; give both the same elements, `each` and number of blocks");
  }
#endif

  const Group& group_;
  const EndpointTable& table_;
  const Leg message_;
  const Counts<N> counts_;
  const Deadline& deadline_;
  X* const extra_;
};

}  // namespace detail

/// Sends counts.send[p] runs of elements to each rank p, and takes what all have sent. `message` says where
/// they lie; its length is not looked at. Hooks see every shard as a message of its own: Ctx::index counts
/// from its first element, and Ctx::first says where that is in all of `in`, or of `out`.
template <class T, class N, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop all_to_all_v(const Group& group, const EndpointTable& table, const Leg& message,
                             const Counts<N>& counts, const Produce& produce = {},
                             const Consume& consume = {}, const Deadline& deadline = {}, X* extra = nullptr) {
  const detail::CountedExchange<T, N, X> exchange(group, table, message, counts, deadline, extra);
  return exchange.run(produce, consume);
}

}  // namespace chorale
