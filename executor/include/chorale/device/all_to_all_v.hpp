#pragma once
// all_to_all_v() reads its counts from device memory when the kernel runs. An earlier kernel, such as a
// router of tokens, may have just written them. The host never needs them, so you can capture a launch in a
// CUDA graph and replay it with other counts.
//
// To each peer a group first sends the count, then its share of the data. If the link has packets, the count
// goes as one packet. A short share follows as packets too if the hooks take values. Without packets the
// count takes a slot of the ring, as each tile does. A group sends slot s to all peers before it takes slot
// s-1 from any of them. So it waits only for an earlier step of a peer, and rings of two slots are enough,
// however many steps each peer makes.
//
// With value hooks, teams of the block's warps divide the links among them. Then all of the above holds for
// each team and its links.

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "chorale/device/collectives.hpp"
#include "chorale/device/link_teams.hpp"
#include "chorale/device/messages.hpp"
#include "chorale/device/ring_slots.hpp"
#include "chorale/device/threads.hpp"

namespace chorale {

/// Says how many runs each rank gets and where they are. A run is `each` consecutive elements, such as a row
/// or a token. Each array is in memory that the kernel can read, has one number per rank, and must not change
/// until the kernel ends. A negative number is refused.
///
/// Received data that exceeds `most` or `room` is dropped: no hook sees it. `received` still counts it.
template <class N = int64_t>
struct Counts {
  const N* send = nullptr;     ///< the number of runs that go to each rank
  const N* send_at = nullptr;  ///< the run of `in` where these begin; null: those of one rank follow those of
                               ///< the rank before
  N* received = nullptr;       ///< output: the number of runs that each rank has sent; null: not wanted
  /// Gives the run of `out` where a rank's data begins; the ranks' data must not overlap. Null: the kept data
  /// of one rank follows that of the rank before.
  const N* receive_at = nullptr;
  uint64_t each = 1;          ///< elements per run
  uint64_t most = unlimited;  ///< the most runs of each rank that are kept
  uint64_t room = unlimited;  ///< the number of runs that `out` holds
};

namespace detail {

/// Holds the first thing that a group sends to each peer.
struct alignas(unit_bytes) CountNote {
  uint64_t count;
  uint64_t kind;  ///< says what is counted, and by how many groups; it must match at both ends
};
static_assert(sizeof(CountNote) == unit_bytes);

/// Holds this group's part of what goes to a rank or comes from it.
struct CountedShare {
  uint64_t first = 0;             ///< the index in `in` or `out` of the shard's first element
  uint64_t begin = 0, bytes = 0;  ///< the part's offset in the shard, and its size, in bytes
  uint64_t limit = 0;             ///< the bytes of the shard that are kept
  uint64_t tiles = 0;             ///< the number of tiles in the ring; 0 if the whole part goes as packets
};

/// Holds what the group knows of each rank. It is kept, because to find it again would take loads and
/// divisions.
struct CountedRanks {
  CountedShare to[most_ranks], from[most_ranks];
  uint64_t came[most_ranks];  ///< the number of runs that each rank has sent
  uint64_t packets_sent[most_ranks], packets_received[most_ranks];  ///< counts before this call
};

#if defined(__CUDACC__)
/// Returns the block's CountedRanks in shared memory. One thread finds each rank's part.
CHORALE_FN CountedRanks* ranks_of_block() {
  alignas(16) __shared__ char room[sizeof(CountedRanks)];
  return reinterpret_cast<CountedRanks*>(room);
}
#endif

/// Runs the group's part of an all_to_all_v() over all links. `came`, the number of runs that each rank has
/// sent, is not a member: an array with a variable index is in local memory, and it would drag the whole
/// object there.
template <class T, class N, class Produce, class Consume, class X>
class CountedExchange {
 public:
  CHORALE_FN CountedExchange(const Group& group, const EndpointTable& table, const Leg& message,
                             const Counts<N>& counts, const Produce& produce, const Consume& consume,
                             const Deadline& deadline, X* extra)
      : group_(group),
        teams_(by_value ? link_teams(group, table.ranks) : 1),
        team_(link_team(group, teams_)),
        table_(table),
        message_(typed<T>(message)),
        grain_(share_unit(message_)),
        counts_(counts),
        produce_(produce),
        consume_(consume),
        deadline_(deadline),
        extra_(extra) {
    if (table.ranks > most_ranks) refuse("a collective has more than 64 ranks");
    if (counts.each == 0) refuse("Counts::each is 0: a run has at least one element");
#if defined(__CUDACC__)
    if (group.scope == Scope::block) shared_ = ranks_of_block();
#endif
  }

  CHORALE_FN Stop run() const {
    uint64_t own[most_ranks];
    uint64_t* const came = shared_ ? shared_->came : own;
    bool goes_by_ring = true, comes_by_ring = true;
    Stop stop = await_room(goes_by_ring);
    if (stop != Stop::none) return stop;
    each_of_team([this](int32_t step) { send_as_packets(next(step)); });
    uint64_t to_send = 0;
    if (goes_by_ring) {
      to_send = slots([this](int32_t step) { return share_to(next(step)); });
      for (uint64_t slot = 0; slot < 2 && stop == Stop::none; ++slot) stop = send_slot(slot, to_send);
      stop = group_.agree(stop);
      if (stop != Stop::none) return stop;
    }
    stop = take_counts(came, comes_by_ring);
    if (stop != Stop::none || !(goes_by_ring || comes_by_ring)) return stop;
    const uint64_t to_take = slots([this, came](int32_t step) { return share_from(previous(step), came); });
    for (uint64_t slot = 2; stop == Stop::none && (slot < to_send || slot <= to_take); ++slot) {
      stop = send_slot(slot, to_send);
      each_of_team([&](int32_t step) {
        const int32_t peer = previous(step);
        if (stop == Stop::none) stop = take_tile(peer, slot - 1, share_from(peer, came));
      });
    }
    stop = group_.agree(stop);
    return stop == Stop::none ? drain_links(group_, table_, deadline_) : stop;
  }

 private:
  static constexpr bool by_value = detail::by_value<Produce, Consume>;

  CHORALE_FN int32_t next(int32_t step) const { return (table_.self + step) % table_.ranks; }
  CHORALE_FN int32_t previous(int32_t step) const {
    return (table_.self + table_.ranks - step) % table_.ranks;
  }
  CHORALE_FN const Endpoint& link(int32_t peer) const { return table_.at(peer, group_.id); }
  CHORALE_FN static bool has_packets(const Endpoint& e) { return e.packet_bytes != 0; }

  /// Calls f(peer) for each rank. With `shared_`, the threads divide the ranks among them. Without it, every
  /// thread makes all calls. `f` is always called by one thread alone.
  template <class F>
  CHORALE_FN void each_rank(const F& f) const {
    const uint32_t first = shared_ ? group_.rank : 0, stride = shared_ ? group_.size : 1;
    for (uint32_t peer = first; peer < uint32_t(table_.ranks); peer += stride) f(int32_t(peer));
  }
  /// Calls f(step) for the steps of the calling thread's team.
  template <class F>
  CHORALE_FN void each_of_team(const F& f) const {
    const uint32_t team = group_.rank / team_.size;
    for (uint32_t step = team; step < uint32_t(table_.ranks); step += teams_) f(int32_t(step));
  }
  /// Returns whether the calling thread writes the results of each_rank().
  CHORALE_FN bool writes() const { return shared_ || group_.leader(); }

  // These functions find what goes where.

  CHORALE_FN uint64_t count_to(int32_t peer) const {
    const N count = counts_.send[peer];
    if constexpr (std::is_signed_v<N>) {
      if (count < 0) refuse_count(peer, int64_t(count));
    }
    return uint64_t(count);
  }
  CHORALE_FN uint64_t place_in(const N* places, int32_t peer) const {
    const N place = places[peer];
    if constexpr (std::is_signed_v<N>) {
      if (place < 0) refuse_place(places == counts_.send_at ? "send_at" : "receive_at", peer, int64_t(place));
    }
    return uint64_t(place);
  }

  CHORALE_FN CountedShare share_to(int32_t peer) const {
    return shared_ ? shared_->to[peer] : find_share_to(peer);
  }
  CHORALE_FN CountedShare find_share_to(int32_t peer) const {
    uint64_t at = 0;
    if (counts_.send_at) {
      at = place_in(counts_.send_at, peer);
    } else {
      // The thread that sends to a rank refuses its negative count. A check after each load here would make
      // each load wait for the one before.
      for (int32_t before = 0; before < peer; ++before) at += uint64_t(counts_.send[before]);
    }
    return share(peer, count_to(peer), at);
  }

  CHORALE_FN CountedShare share_from(int32_t peer, const uint64_t* came) const {
    return shared_ ? shared_->from[peer] : find_share_from(peer, came);
  }
  CHORALE_FN CountedShare find_share_from(int32_t peer, const uint64_t* came) const {
    const auto kept_of = [&](int32_t rank) { return came[rank] < counts_.most ? came[rank] : counts_.most; };
    uint64_t at = 0;
    if (counts_.receive_at) {
      at = place_in(counts_.receive_at, peer);
    } else {
      for (int32_t before = 0; before < peer; ++before) at += kept_of(before);
    }
    CountedShare found = share(peer, came[peer], at);
    const uint64_t room = at < counts_.room ? counts_.room - at : 0, kept = kept_of(peer);
    found.limit = (kept < room ? kept : room) * counts_.each * message_.elem;
    return found;
  }

  /// Returns the share of `count` runs that begin `at` runs into a buffer.
  CHORALE_FN CountedShare share(int32_t peer, uint64_t count, uint64_t at) const {
    const Endpoint& e = link(peer);
    Leg shard = message_;
    shard.bytes = count * counts_.each * message_.elem;
    const Leg leg = share_of(shard, group_.id, group_.count, grain_);
    CountedShare found;
    found.first = at * counts_.each;
    found.begin = leg.begin;
    found.bytes = leg.bytes;
    // Each end knows only its own link, so it assumes that all shards have this length.
    const bool packets =
        by_value && has_packets(e) && as_packets(e, leg.bytes) && packets_for_all(shard.bytes, table_.ranks);
    found.tiles = packets ? 0 : Progress(e, leg, 0, true).tiles;
    return found;
  }

  CHORALE_FN Leg leg_of(int32_t peer, const CountedShare& share) const {
    Leg leg = message_;
    leg.begin = share.begin;
    leg.bytes = share.bytes;
    leg.shard = uint32_t(peer);
    if (leg.in) leg.in = static_cast<const char*>(leg.in) + share.first * message_.elem;
    if (leg.out) leg.out = static_cast<char*>(leg.out) + share.first * message_.elem;
    return leg;
  }

  /// Returns the progress of a part in a stream that is at position `start`. The count's slot comes before
  /// tile 0.
  CHORALE_FN Progress tiles_of(const Endpoint& e, const Leg& leg, uint64_t start, uint64_t slot) const {
    Progress at(e, leg, start, true);
    at.head = has_packets(e) ? 0 : 1;
    at.tile = slot - 1;  // wraps for the count's slot, as position() expects
    return at;
  }

  /// Returns the number of slots of the team's longest stream, including the one for the count.
  template <class ShareOf>
  CHORALE_FN uint64_t slots(const ShareOf& share_at) const {
    uint64_t most = 1;
    each_of_team([&](int32_t step) {
      const uint64_t tiles = share_at(step).tiles;
      most = tiles + 1 > most ? tiles + 1 : most;
    });
    return most;
  }

  // These functions move packets.

  // Return the number of messages on a link before this call.
  CHORALE_FN uint64_t packets_sent(int32_t peer, const Endpoint& e) const {
    return shared_ ? shared_->packets_sent[peer] : load_relaxed(&e.local->cursor.packets_sent);
  }
  CHORALE_FN uint64_t packets_received(int32_t peer, const Endpoint& e) const {
    return shared_ ? shared_->packets_received[peer] : load_relaxed(&e.local->cursor.packets_received);
  }

  /// Waits until the peers have room for packets. Sets `by_ring` to whether this rank sends anything through
  /// a ring.
  CHORALE_FN Stop await_room(bool& by_ring) const {
    Stop stop = Stop::none;
    bool only_packets = true;
    each_rank([&](int32_t peer) {
      const Endpoint& e = link(peer);
      if (e.depth < 2) refuse("all_to_all_v() needs rings of at least two slots");
      // All loads start before the first result is used.
      const uint64_t sent = load_relaxed(&e.local->cursor.packets_sent),
                     received = load_relaxed(&e.local->cursor.packets_received),
                     credit = seen_credit(&e.local->slot_free.note);
      const CountedShare share = find_share_to(peer);
      if (shared_) {
        shared_->to[peer] = share;
        shared_->packets_sent[peer] = sent;
        shared_->packets_received[peer] = received;
      }
      only_packets &= has_packets(e) && share.tiles == 0;
      if (stop == Stop::none && has_packets(e) && credit < packet_credit(sent + 1)) {
        stop = await_packet_room(alone(group_), *e.local, sent + 1, deadline_);
      }
    });
    by_ring = !group_.all(only_packets && stop == Stop::none);
    return by_ring ? group_.agree(stop) : Stop::none;
  }

  /// Sends the count to a peer, and its data if they go as packets. Called by a team.
  CHORALE_FN void send_as_packets(int32_t peer) const {
    const Endpoint& e = link(peer);
    if (!has_packets(e)) return;
    const uint64_t number = packets_sent(peer, e) + 1;
    const uint32_t flag = packet_flag(number);
    LL16* const slots = reinterpret_cast<LL16*>(e.packet_dst + packet_bank<LL16>(number) * e.packet_bytes);
    if (team_.leader()) {
      group_.step();
      write_unit(slots, unit_of(CountNote{count_to(peer), kind()}), flag);
    }
    if constexpr (by_value) {
      const CountedShare share = share_to(peer);
      if (share.tiles != 0 || share.bytes == 0) return;
      const Leg leg = leg_of(peer, share);
      Ctx<X> ctx = context_of_packets(e, leg, share);
      detail::produce<T>(team_, leg, produce_, ctx, 0, leg.bytes,
                         Packets<LL16>(static_cast<void*>(slots + packets_per_unit<LL16>), flag));
    }
  }

  CHORALE_FN Packets<LL16> packets_from(int32_t peer, const Endpoint& e) const {
    const uint64_t number = packets_received(peer, e) + 1;
    return Packets<LL16>(e.packet_src + packet_bank<LL16>(number) * e.packet_bytes, packet_flag(number),
                         &deadline_);
  }

  /// Takes the counts of all ranks and the data that came as packets. Sets `by_ring` to whether anything
  /// comes through a ring.
  CHORALE_FN Stop take_counts(uint64_t* came, bool& by_ring) const {
    Stop stop = Stop::none;
    for (int32_t step = 0; step < table_.ranks && stop == Stop::none; ++step) {
      if (!has_packets(link(previous(step)))) stop = take_count(previous(step), came);
    }
    if (stop != Stop::none) return stop;
    each_rank([&](int32_t peer) {
      const Endpoint& e = link(peer);
      if (stop != Stop::none || !has_packets(e)) return;
      Unit unit;
      stop = packets_from(peer, e).receive(group_, 0, unit);
      if (stop == Stop::none) came[peer] = hear(e, unit);
    });
    stop = group_.agree(stop);
    if (stop != Stop::none) return stop;
    bool only_packets = true;
    each_rank([&](int32_t peer) {
      if (group_.id == 0 && counts_.received && writes()) counts_.received[peer] = N(came[peer]);
      const CountedShare share = find_share_from(peer, came);
      if (shared_) shared_->from[peer] = share;
      only_packets &= share.tiles == 0;
    });
    by_ring = !group_.all(only_packets);
    if constexpr (by_value) {
      each_of_team([&](int32_t step) {
        const int32_t peer = previous(step);
        if (stop == Stop::none) stop = keep_packets(peer, share_from(peer, came));
      });
    }
    stop = group_.agree(stop);  // after the last look
    if (stop != Stop::none) return stop;
    each_rank([&](int32_t peer) {
      const Endpoint& e = link(peer);
      if (!has_packets(e) || !writes()) return;
      const uint64_t sent = packets_sent(peer, e) + 1, received = packets_received(peer, e) + 1;
      end_message(e, &e.local->cursor.packets_sent, sent - 1, sent);
      end_message(e, &e.local->cursor.packets_received, received - 1, received);
      group_.step();
      give_credit(&e.remote->slot_free.note, received);
    });
    group_.sync();  // makes the change visible to all threads in the next call
    return Stop::none;
  }

  /// Gives the hook the data of a part that came as packets, as far as it fits. Called by a team. Ignores the
  /// rest, which the peer's next message overwrites.
  CHORALE_FN Stop keep_packets(int32_t peer, const CountedShare& share) const {
    const uint64_t bytes = kept_bytes(share, 0, share.bytes);
    if (share.tiles != 0 || bytes == 0) return Stop::none;
    const Endpoint& e = link(peer);
    const Leg leg = leg_of(peer, share);
    Packets<LL16> from = packets_from(peer, e);
    from.slots += packets_per_unit<LL16>;
    return detail::consume<T>(team_, leg, consume_, context_of_packets(e, leg, share), 0, bytes, from);
  }

  CHORALE_FN Ctx<X> context_of_packets(const Endpoint& e, const Leg& leg, const CountedShare& share) const {
    Ctx<X> ctx = detail::context(group_, e, leg, leg.bytes, extra_);
    ctx.first = share.first;
    return ctx;
  }

  /// Returns how many of the `bytes` bytes that begin `done` bytes into a part are kept.
  CHORALE_FN static uint64_t kept_bytes(const CountedShare& share, uint64_t done, uint64_t bytes) {
    const uint64_t at = share.begin + done, left = at < share.limit ? share.limit - at : 0;
    return left < bytes ? left : bytes;
  }

  // These functions move data through the ring.

  /// Sends a slot on each of the team's links. The longest of these sends `to_send` slots.
  CHORALE_FN Stop send_slot(uint64_t slot, uint64_t to_send) const {
    Stop stop = Stop::none;
    if (slot >= to_send) return stop;
    each_of_team([&](int32_t step) {
      const int32_t peer = next(step);
      if (stop == Stop::none && !(slot == 0 && has_packets(link(peer)))) stop = send(peer, slot);
    });
    return stop;
  }

  /// Sends one slot to a peer: the count or a tile. Called by a team.
  CHORALE_FN Stop send(int32_t peer, uint64_t slot) const {
    const Endpoint& e = link(peer);
    const CountedShare share = share_to(peer);
    if (slot > share.tiles) return Stop::none;
    const Leg leg = leg_of(peer, share);
    const Progress at = tiles_of(e, leg, load_relaxed(&e.local->cursor.sent), slot);
    const Stop stop = await_free_slot(team_, e, at, deadline_);
    if (stop != Stop::none) return stop;
    char* const region = staged_slot(e, at);
    if (slot == 0) {
      if (team_.leader()) store_unit(region, unit_of(CountNote{count_to(peer), kind()}));
    } else {
      Ctx<X> ctx = detail::context(group_, e, leg, at.tile_bytes, extra_);
      locate(ctx, e, leg, at, region, 0, at.bytes(leg));
      ctx.first = share.first;
      detail::produce<T>(team_, leg, produce_, ctx, at.offset(), at.bytes(leg), Mem(region));
    }
    const uint64_t bytes = slot == 0 ? unit_bytes : at.bytes(leg);
    return signal_slot(team_, e, at, bytes, slot == at.tiles, 0, deadline_);
  }

  CHORALE_FN Stop take_count(int32_t peer, uint64_t* came) const {
    const Endpoint& e = link(peer);
    const uint64_t start = load_relaxed(&e.local->cursor.received);
    // The count has arrived, and says how many tiles follow.
    const Progress first = tiles_of(e, leg_of(peer, share(peer, 0, 0)), start, 0);
    const Stop stop = await_slot(group_, e, first, unit_bytes, deadline_);
    if (stop != Stop::none) return stop;
    const uint64_t count = hear(e, load_unit(landed_slot(e, first)));
    if (!shared_ || group_.leader()) came[peer] = count;
    const Progress at = tiles_of(e, leg_of(peer, share(peer, count, 0)), start, 0);
    return free_slot(group_, e, at, at.tiles == 0, !is_block_hook<Consume>, deadline_);
  }

  /// Takes a tile. Called by a team.
  CHORALE_FN Stop take_tile(int32_t peer, uint64_t slot, const CountedShare& share) const {
    if (slot > share.tiles) return Stop::none;
    const Endpoint& e = link(peer);
    const Leg leg = leg_of(peer, share);
    const Progress at = tiles_of(e, leg, load_relaxed(&e.local->cursor.received), slot);
    const Stop stop = await_slot(team_, e, at, at.bytes(leg), deadline_);
    if (stop != Stop::none) return stop;
    const char* const region = landed_slot(e, at);
    const uint64_t bytes = kept_bytes(share, at.offset(), at.bytes(leg));
    if (bytes != 0) {
      Ctx<X> ctx = detail::context(group_, e, leg, at.tile_bytes, extra_);
      locate(ctx, e, leg, at, region, 0, bytes);
      ctx.first = share.first;
      detail::consume<T>(team_, leg, consume_, ctx, at.offset(), bytes, Mem(region));
    }
    return free_slot(team_, e, at, slot == at.tiles, !is_block_hook<Consume>, deadline_);
  }

  // These functions make and read the note that goes first.
  static constexpr uint64_t run_mask = (uint64_t(1) << 47) - 1;
  CHORALE_FN uint64_t kind() const {
    return uint64_t(group_.count) << 48 | uint64_t(by_value) << 47 |
           (counts_.each * message_.elem & run_mask);
  }
  CHORALE_FN static Unit unit_of(const CountNote& note) {
    Unit unit;
    std::memcpy(&unit, &note, unit_bytes);
    return unit;
  }
  CHORALE_FN uint64_t hear(const Endpoint& e, const Unit& unit) const {
    CountNote note;
    std::memcpy(&note, &unit, unit_bytes);
    if (note.kind != kind()) refuse_kind(e, note);
    return note.count;
  }

#if defined(__CUDACC__)
  CHORALE_FN void refuse_count(int32_t, int64_t) const { refuse("a count is negative"); }
  CHORALE_FN void refuse_place(const char*, int32_t, int64_t) const { refuse("a place is negative"); }
  CHORALE_FN void refuse_kind(const Endpoint&, const CountNote&) const {
    refuse("the sender has other elements, another `each`, number of blocks or kind of hooks");
  }
#else
  void refuse_count(int32_t peer, int64_t count) const {
    refuse("all_to_all_v(): rank " + std::to_string(table_.self) + " has a count of " +
           std::to_string(count) + " for rank " + std::to_string(peer));
  }
  void refuse_place(const char* which, int32_t peer, int64_t place) const {
    refuse("all_to_all_v(): rank " + std::to_string(table_.self) + " has a " + which + " of " +
           std::to_string(place) + " for rank " + std::to_string(peer) + ": places count from 0");
  }
  void refuse_kind(const Endpoint& e, const CountNote& note) const {
    const auto words = [](uint64_t kind) {
      return std::to_string(kind & run_mask) + " bytes, in " + std::to_string(kind >> 48) + " groups" +
             (kind & ~run_mask & (run_mask + 1) ? "" : ", with block hooks");
    };
    refuse("all_to_all_v(): over channel " + std::to_string(e.channel) + " rank " + std::to_string(e.peer) +
           " counts runs of " + words(note.kind) + ", and rank " + std::to_string(e.self) + " runs of " +
           words(kind()) + "; give both the same elements, `each`, number of blocks and kind of hooks");
  }
#endif

  const Group& group_;
  const uint32_t teams_;
  /// Equals the group if there is one team. Block hooks have no teams because they may use shared memory,
  /// which has room for one tile.
  const Group team_;
  const EndpointTable& table_;
  const Leg message_;
  const uint64_t grain_;  ///< parts are multiples of this number of bytes
  const Counts<N> counts_;
  const Produce& produce_;
  const Consume& consume_;
  const Deadline& deadline_;
  X* const extra_;
  CountedRanks* shared_ = nullptr;  ///< null: every thread handles all ranks
};

}  // namespace detail

/// Sends counts.send[p] runs of elements to each rank p and receives what all ranks have sent. Called by all
/// threads of the group, on all ranks. `message` says where the data is; its length is ignored. Hooks see
/// each shard as a separate message: Ctx::index counts from the shard's first element, and Ctx::first is that
/// element's index in `in` or `out`. Short shards go as packets if the links have them and the hooks are
/// value hooks. Ctx::region is null then. With value hooks the block uses its named barriers, as
/// multiwarp_group() does.
template <class T, class N, class Produce = CopyProduce, class Consume = CopyConsume, class X = None>
CHORALE_FN Stop all_to_all_v(const Group& group, const EndpointTable& table, const Leg& message,
                             const Counts<N>& counts, const Produce& produce = {},
                             const Consume& consume = {}, const Deadline& deadline = {}, X* extra = nullptr) {
  const detail::CountedExchange<T, N, Produce, Consume, X> exchange(group, table, message, counts, produce,
                                                                    consume, deadline, extra);
  return exchange.run();
}

}  // namespace chorale
