#pragma once
// The kernel of dispatch(), see experts.hpp. Each block:
//
//   1. counts the tokens of its rank by expert, in all and before its own
//   2. sends a note to block b of each rank, with these counts and its tokens' routes
//   3. sends its tokens as packets, if they are few
//   4. receives the notes, and finds the row of each token that comes to it
//   5. sends its tokens as rows, if they are many, and takes those that come to it
//
// The rows of an expert are in the order of their senders' ranks, and those of one sender in the order of its
// tokens.

#include <cstdint>
#include <cstring>
#include <string>

#include "chorale/fused/expert_view.hpp"

namespace chorale::fused {

namespace detail {

/// Makes the units of a token of this rank: its elements, then its scales.
struct TokenUnits {
  const char* token;
  const char* scales;
  uint32_t token_bytes, scale_bytes;

  CHORALE_FN Unit operator()(uint64_t index) const {
    const uint64_t at = index * unit_bytes;
    if (at < token_bytes) return load_unit(token + at);
    return load_unit(scales + (at - token_bytes),
                     chorale::detail::bytes_within(index, unit_bytes, token_bytes + scale_bytes));
  }
};

/// Stores a token in the row of each of its experts here, and its scales beside.
struct ExpertRows {
  char* rows;
  char* scales;
  uint32_t token_bytes, scale_bytes;
  const Route* routes;  ///< of the token
  uint32_t top_k;

  CHORALE_FN void store(uint64_t index, const Unit& unit) const {
    const uint64_t at = index * unit_bytes;
    for (uint32_t slot = 0; slot < top_k; ++slot) {
      const int32_t place = routes[slot].place;
      if (place < 0) continue;
      if (at < token_bytes) {
        store_unit(rows + uint64_t(place) * token_bytes + at, unit);
      } else {
        store_unit(scales + uint64_t(place) * scale_bytes + (at - token_bytes), unit,
                   chorale::detail::bytes_within(index, unit_bytes, token_bytes + scale_bytes));
      }
    }
  }
#if defined(__CUDACC__)
  CHORALE_FN bool whole(uint64_t) const { return true; }
  template <bool, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      if (index < turn.n) store(turn.unit + index * turn.stride, from[index]);
    }
  }
#else
  void put(uint64_t at, uint64_t bytes, const char* from) const {
    for (uint64_t index = 0; index < units_of(bytes); ++index) {
      store(at / unit_bytes + index, load_unit(from + index * unit_bytes));
    }
  }
#endif
};

}  // namespace detail

/// Sends the tokens of each rank to the ranks of their experts. The arguments are those of Dispatch, see
/// experts.hpp.
/// \tparam Id  the type of expert numbers: int32_t or int64_t
template <class Id>
struct DispatchKernel {
  ExpertView view;
  const char* tokens;
  const char* scales;
  const Id* experts;
  const float* weights;  ///< null: all are 1
  uint32_t n;
  char* rows;
  char* row_scales;
  int32_t* counts;
  int32_t* wanted;
  int32_t* begins;
  uint64_t room;       ///< rows in all, or of each expert if they are padded
  uint32_t alignment;  ///< the rows of each expert begin at a multiple of it
  bool padded;         ///< expert x has the rows x * room .. (x + 1) * room - 1

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    if (group.count != view.blocks) refuse("an expert exchange is launched with another number of blocks");
    const uint64_t call = load_relaxed(&view.calls(group.id)->dispatched) + 1;
    const bool packets = n <= view.packet_tokens;
    if (!count(group)) return Stop::aborted;
    send_notes(group, call, packets);
    if (packets) send_packets(group, call);
    Stop stop = take_notes(group, deadline, call);
    if (stop != Stop::none) return stop;
    find_places(group);
    stop = move_rows(group, deadline, call, packets);
    if (stop == Stop::none && group.leader()) store_relaxed(&view.calls(group.id)->dispatched, call);
    return stop;
  }

 private:
  CHORALE_FN TokenRange mine(const Group& group) const { return view.range(n, group.id); }

  /// Returns the expert in a slot of a token, or -1.
  CHORALE_FN int64_t expert(uint64_t token, uint32_t slot) const {
    return int64_t(experts[token * view.top_k + slot]);
  }
  /// Checks the expert in a slot of a token. On the CPU it throws what is wrong; on CUDA it returns false.
  CHORALE_FN bool is_right(uint64_t token, uint32_t slot) const {
    const int64_t id = expert(token, slot);
    const bool exists = id >= -1 && id < int64_t(view.experts());
    bool twice = false;
    for (uint32_t before = 0; before < slot && id >= 0; ++before) twice |= expert(token, before) == id;
#if !defined(__CUDACC__)
    if (!exists || twice) {
      refuse("dispatch(): token " + std::to_string(token) + " names expert " + std::to_string(id) +
             (twice ? " twice"
                    : ", expected -1 for none, or 0 to " + std::to_string(int64_t(view.experts()) - 1)));
    }
#endif
    return exists && !twice;
  }
  CHORALE_FN bool goes_to(uint32_t token, uint32_t shard) const {
    bool yes = false;
    for (uint32_t slot = 0; slot < view.top_k; ++slot) {
      const int64_t id = expert(token, slot);
      yes |= id >= 0 && uint32_t(id) / view.experts_per_shard == shard;
    }
    return yes;
  }
  CHORALE_FN detail::UnitSource<detail::TokenUnits, 8> source(uint32_t token) const {
    return {{tokens + uint64_t(token) * view.token_bytes,
             scales ? scales + uint64_t(token) * view.scale_bytes : nullptr, view.token_bytes,
             view.scale_bytes}};
  }
  CHORALE_FN detail::ExpertRows sink(const Route* routes) const {
    return {rows, row_scales, view.token_bytes, view.scale_bytes, routes, view.top_k};
  }

  /// Counts this rank's tokens by expert, and those before this block's. Remembers where the block's go.
  /// Returns false if a token names a wrong expert; every block of the rank gets the same.
  CHORALE_FN bool count(const Group& group) const {
    uint32_t *const totals = view.totals(group.id), *const starts = view.starts(group.id);
    const TokenRange own = mine(group);
    for (uint32_t at = group.rank; at < view.experts(); at += group.size) totals[at] = starts[at] = 0;
    group.sync();
    bool right = true;
    for (uint64_t at = group.rank; at < uint64_t(n) * view.top_k; at += group.size) {
      const uint64_t token = at / view.top_k;
      const uint32_t slot = uint32_t(at % view.top_k);
      const int64_t id = expert(token, slot);
      right &= is_right(token, slot);
      if (id < 0 || !right) continue;
      post_relaxed(&totals[id], 1u);
      if (token < own.begin) post_relaxed(&starts[id], 1u);
    }
    if (!group.all(right)) return false;
    for (uint32_t token = own.begin + group.rank; token < own.end; token += group.size) {
      uint64_t goes = 0;
      for (uint32_t slot = 0; slot < view.top_k; ++slot) {
        const int64_t id = expert(token, slot);
        const int32_t owner = id < 0 ? -1 : view.owners[uint32_t(id) / view.experts_per_shard];
        if (owner >= 0) goes |= uint64_t(1) << owner;
      }
      *view.goes(token) = goes;
    }
    group.sync();
    return true;
  }

  /// Returns a word of the note to a shard, after its first unit.
  CHORALE_FN uint32_t note_word(const Group& group, uint32_t shard, uint32_t word) const {
    const uint32_t counts_words = view.counts_words(), first = shard * view.experts_per_shard;
    for (const uint32_t* of : {view.totals(group.id), view.starts(group.id)}) {
      if (word < counts_words) return word < view.experts_per_shard ? load_relaxed(&of[first + word]) : 0;
      word -= counts_words;
    }
    const TokenRange own = mine(group);
    const uint32_t routes_words = view.routes_words(own.size()), routes = own.size() * view.top_k;
    const bool weighs = word >= routes_words;
    if (weighs) word -= routes_words;
    if (word >= routes) return 0;
    if (weighs) {
      const float weight = weights ? weights[uint64_t(own.begin) * view.top_k + word] : 1.0f;
      uint32_t bits;
      std::memcpy(&bits, &weight, sizeof bits);
      return bits;
    }
    const int64_t id = expert(own.begin + word / view.top_k, word % view.top_k);
    const bool here = id >= int64_t(first) && id < int64_t(first) + view.experts_per_shard;
    return here ? uint32_t(id) - first : uint32_t(-1);
  }

  CHORALE_FN void send_notes(const Group& group, uint64_t call, bool packets) const {
    const uint32_t units = 1 + view.note_words(mine(group).size()) / 4,
                   flag = chorale::detail::packet_flag(call);
    for (uint64_t at = group.rank; at < uint64_t(units) * view.shards; at += group.size) {
      const uint32_t shard = uint32_t(at / units), unit = uint32_t(at % units);
      const int32_t owner = view.owners[shard];
      if (owner < 0) continue;
      Unit held{};
      if (unit == 0) {
        held.item[0] = n;
        held.item[1] = packets ? 1 : 0;
      } else {
        for (uint32_t word = 0; word < 4; ++word)
          held.item[word] = note_word(group, shard, (unit - 1) * 4 + word);
      }
      group.step();
      LL16* const note = reinterpret_cast<LL16*>(view.note(owner, view.window.self, group.id, call));
      write_unit(note + unit * packets_per_unit<LL16>, held, flag);
    }
  }

  /// Calls f(warp, token, owner) for each token of a range and each other rank that it goes to.
  template <class F>
  CHORALE_FN void each_send(const Group& group, const TokenRange& range, const F& f) const {
    const Group warp = group.warps();
    detail::each_of_warp(group, warp, uint64_t(range.size()) * view.shards, [&](uint64_t item) {
      // Each rank begins with another shard.
      const uint32_t token = range.begin + uint32_t(item / view.shards),
                     shard = (view.shard + 1 + uint32_t(item % view.shards)) % view.shards;
      const int32_t owner = view.owners[shard];
      if (owner >= 0 && owner != view.window.self && goes_to(token, shard)) f(warp, token, owner);
    });
  }

  CHORALE_FN void send_packets(const Group& group, uint64_t call) const {
    detail::with_form(view, [&](auto form) {
      using P = typename decltype(form)::type;
      each_send(group, mine(group), [&](const Group& warp, uint32_t token, int32_t owner) {
        void* const slots = view.token_packet(owner, view.window.self, token, call);
        transfer(warp, view.payload(), source(token), Packets<P>(slots, chorale::detail::packet_flag(call)));
      });
    });
  }

  /// Waits for the notes of all ranks, and keeps what they say.
  CHORALE_FN Stop take_notes(const Group& group, const Deadline& deadline, uint64_t call) const {
    const uint32_t flag = chorale::detail::packet_flag(call);
    Stop stop = Stop::none;
    for (int32_t sender = 0; sender < view.window.ranks && stop == Stop::none; ++sender) {
      const Packets<LL16> note(static_cast<const void*>(view.note(view.window.self, sender, group.id, call)),
                               flag, &deadline);
      Unit held;
      stop = note.receive(group, 0, held);
      if (stop != Stop::none) break;
      const uint32_t tokens = held.item[0];
      if (group.leader()) {
        view.came(group.id, sender)[0] = tokens;
        view.came(group.id, sender)[1] = held.item[1];
      }
      const TokenRange range = view.range(tokens, group.id);
      const uint32_t units = view.note_words(range.size()) / 4;
      for (uint32_t unit = group.rank; unit < units && stop == Stop::none; unit += group.size) {
        stop = note.receive(group, unit + 1, held);
        for (uint32_t word = 0; word < 4 && stop == Stop::none; ++word)
          keep(group, sender, range, unit * 4 + word, held.item[word]);
      }
    }
    return group.agree(stop);
  }

  /// Keeps a word of a note, as note_word() made it.
  CHORALE_FN void keep(const Group& group, int32_t sender, const TokenRange& range, uint32_t word,
                       uint32_t value) const {
    const uint32_t counts_words = view.counts_words();
    for (uint32_t* to : {view.totals_from(group.id, sender), view.starts_from(group.id, sender)}) {
      if (word < counts_words) {
        if (word < view.experts_per_shard) to[word] = value;
        return;
      }
      word -= counts_words;
    }
    const uint32_t routes_words = view.routes_words(range.size());
    const bool weighs = word >= routes_words;
    if (weighs) word -= routes_words;
    if (word >= range.size() * view.top_k) return;
    Route& route = view.routes(sender, range.begin)[word];
    if (weighs) {
      std::memcpy(&route.weight, &value, sizeof value);
    } else {
      route.expert = int32_t(value);
      route.place = -1;
    }
  }

  /// Finds the row of each token that comes to this block, and gives the numbers of rows to the caller.
  CHORALE_FN void find_places(const Group& group) const {
    uint32_t* const sums = view.sums(group.id);
    const uint32_t experts_here = view.experts_per_shard;
    for (uint32_t at = group.rank; at < experts_here; at += group.size) {
      uint32_t sum = 0;
      for (int32_t sender = 0; sender < view.window.ranks; ++sender)
        sum += view.totals_from(group.id, sender)[at];
      sums[at] = sum;
    }
    group.sync();
    for (uint32_t at = group.rank; at < experts_here; at += group.size) {
      uint64_t begin = uint64_t(at) * room;
      if (!padded) {
        begin = 0;
        for (uint32_t before = 0; before < at; ++before) begin += aligned(sums[before]);
      }
      const uint64_t end = padded ? begin + room : room;
      if (begin > end) begin = end;
      if (group.id == 0) {
        counts[at] = int32_t(sums[at] < end - begin ? sums[at] : end - begin);
        if (wanted) wanted[at] = int32_t(sums[at]);
        if (begins) begins[at] = int32_t(begin);
        if (begins && at + 1 == experts_here) {
          const uint64_t last = begin + aligned(sums[at]);
          begins[experts_here] = int32_t(padded || last > end ? end : last);
        }
      }
      give_rows(group, at, begin, end);
    }
    group.sync();
  }
  CHORALE_FN uint64_t aligned(uint32_t rows_of_expert) const {
    return (uint64_t(rows_of_expert) + alignment - 1) / alignment * alignment;
  }

  /// Gives the rows from `begin` on to the tokens of an expert. Called by one thread.
  CHORALE_FN void give_rows(const Group& group, uint32_t expert_here, uint64_t begin, uint64_t end) const {
    for (int32_t sender = 0; sender < view.window.ranks; ++sender) {
      uint64_t next = begin + view.starts_from(group.id, sender)[expert_here];
      const TokenRange range = view.range(view.came(group.id, sender)[0], group.id);
      Route* const routes = view.routes(sender, range.begin);
      for (uint32_t at = 0; at < range.size() * view.top_k; ++at) {
        if (routes[at].expert != int32_t(expert_here)) continue;
        if (next < end) routes[at].place = int32_t(next);
        ++next;
      }
      begin += view.totals_from(group.id, sender)[expert_here];
    }
  }

  /// Sends this block's tokens as rows unless they went as packets, and takes those of all ranks.
  CHORALE_FN Stop move_rows(const Group& group, const Deadline& deadline, uint64_t call, bool packets) const {
    uint32_t pieces = pieces_of(mine(group));
    const uint32_t to_send = packets ? 0 : pieces;
    for (int32_t sender = 0; sender < view.window.ranks; ++sender) {
      const uint32_t theirs = pieces_of(view.range(view.came(group.id, sender)[0], group.id));
      pieces = theirs < pieces ? pieces : theirs;
    }
    Stop stop = Stop::none;
    // While a piece is on its way, the block takes the one before.
    for (uint32_t piece = 0; piece <= pieces && stop == Stop::none; ++piece) {
      if (piece < to_send) send_piece(group, call, piece);
      if (piece != 0) stop = take_piece(group, deadline, call, piece - 1);
    }
    return stop;
  }

  CHORALE_FN void send_piece(const Group& group, uint64_t call, uint32_t piece) const {
    each_send(group, piece_of(mine(group), piece), [&](const Group& warp, uint32_t token, int32_t owner) {
      transfer(warp, view.payload(), source(token), Mem(view.token_row(owner, view.window.self, token)));
    });
    detail::tell_ranks(group, view.window, view.token_signal(group.id), view.signal_value(call, piece + 1),
                       [](int32_t) { return true; });
  }

  CHORALE_FN Stop take_piece(const Group& group, const Deadline& deadline, uint64_t call,
                             uint32_t piece) const {
    const Group warp = group.warps();
    Stop stop = Stop::none;
    for (int32_t step = 0; step < view.window.ranks && stop == Stop::none; ++step) {
      const int32_t sender = (view.window.self + step) % view.window.ranks;
      const uint32_t* const came = view.came(group.id, sender);
      const TokenRange range = piece_of(view.range(came[0], group.id), piece);
      if (range.size() == 0) continue;
      const bool own = sender == view.window.self;
      if (!own && came[1] == 0) {
        stop = wait_signal_from(group, view.window, sender, view.token_signal(group.id), Cmp::ge,
                                view.signal_value(call, piece + 1), deadline);
        if (stop != Stop::none) return stop;
      }
      detail::each_of_warp(group, warp, range.size(), [&](uint64_t item) {
        const uint32_t token = range.begin + uint32_t(item);
        const Route* const routes = view.routes(sender, token);
        bool comes = false;
        for (uint32_t slot = 0; slot < view.top_k; ++slot) comes |= routes[slot].expert >= 0;
        if (!comes || stop != Stop::none) return;
        if (own) {
          transfer(warp, view.payload(), source(token), sink(routes));
        } else if (came[1] == 0) {
          transfer(warp, view.payload(), Mem(view.token_row(view.window.self, sender, token)), sink(routes));
        } else {
          detail::with_form(view, [&](auto form) {
            using P = typename decltype(form)::type;
            const void* const slots = view.token_packet(view.window.self, sender, token, call);
            stop = transfer(warp, view.payload(),
                            Packets<P>(slots, chorale::detail::packet_flag(call), &deadline), sink(routes));
          });
        }
      });
      if (came[1] != 0) stop = group.agree(stop);
    }
    return stop;
  }
};

}  // namespace chorale::fused
