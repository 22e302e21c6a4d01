#pragma once
// The kernels of an expert exchange (dispatch.hpp, combine.hpp) share this view of its memory.
//
// The tokens of a call are divided among the blocks. Block b of a rank exchanges data only with block b of
// the other ranks, so no block waits for another block of its rank. The memory of a rank has a part for each
// sender:
//
//   notes           what a sender's block says first: its routes, and how many tokens each expert gets.
//                   Packets, in two banks
//   token packets   tokens of short calls, in two banks
//   token rows      tokens of long calls
//   result packets  sums of short calls, for this rank's own tokens
//   result rows     sums of long calls
//
// A bank may be written again after two calls of dispatch(). The writer has then received the notes of the
// call in between, and its peer sent those after it had ended the call that read the bank. Rows need no
// second bank. A rank writes rows for tokens after it has received this call's notes, so its peer has ended
// all earlier calls. A rank that combines has received the notes of the dispatch before.

#include <cstdint>
#include <cstring>

#include "chorale/device.hpp"

namespace chorale::fused {

/// Holds the numbers that all ranks of an expert exchange share. A shard is the experts of one rank. Expert x
/// is in shard x / experts_per_shard.
struct ExpertShape {
  uint32_t shards = 0;             ///< more than there are ranks if some shards have no owner
  uint32_t experts_per_shard = 0;  ///< experts of each rank
  uint32_t top_k = 0;              ///< experts that each token names
  uint32_t max_tokens = 0;         ///< the most tokens of a rank and call
  uint32_t packet_tokens = 0;      ///< a rank with at most this many tokens sends them as packets
  uint32_t blocks = 0;             ///< thread blocks of each launch
  uint32_t token_bytes = 0;        ///< bytes of a token without its scales, a multiple of 16
  uint32_t scale_bytes = 0;        ///< bytes of a token's scales; 0: it has none
  uint32_t result_bytes = 0;       ///< bytes of a combined token, a multiple of 16
  bool lines = false;              ///< packets are LL128, otherwise LL16
};

/// Says where a token goes for one of its experts, and with which weight its result comes back.
struct alignas(16) Route {
  int32_t expert;  ///< the expert's number in this rank's shard; -1: it is not here
  int32_t place;   ///< the token's row among this rank's rows; -1: it has none
  float weight;
};

/// Describes the tokens of a block: begin .. end-1.
struct TokenRange {
  uint32_t begin, end;
  CHORALE_FN uint32_t size() const { return end - begin; }
};

/// Gives kernels the memory of an expert exchange.
struct ExpertView : ExpertShape {
  /// Holds what a block says of its tokens in its first unit of a note.
  struct Note {
    uint32_t tokens;   ///< of the rank, not of the block
    uint32_t packets;  ///< 1: tokens and results go as packets; 0: as rows
    uint32_t unused[2];
  };
  static_assert(sizeof(Note) == unit_bytes);

  /// Counts the calls of a block. Both are in the memory of its rank.
  struct alignas(128) Calls {
    uint64_t dispatched, combined;
  };

  /// Gives the offsets of the parts in a rank's window.
  struct Offsets {
    uint64_t notes, token_packets, token_rows, result_packets, result_rows;
    uint64_t calls, work, routes, goes;  ///< only the owner uses these
    uint64_t end;                        ///< the size of the window
  };

  WindowView window;
  const int32_t* owners = nullptr;  ///< the rank that has each shard; -1: none
  uint32_t shard = 0;               ///< this rank's shard
  Offsets at{};

  CHORALE_HD static uint64_t padded(uint64_t bytes) { return units_of(bytes) * unit_bytes; }
  CHORALE_HD uint32_t experts() const { return shards * experts_per_shard; }
  CHORALE_HD uint32_t ranks() const { return uint32_t(window.ranks); }
  CHORALE_HD uint64_t payload() const { return token_bytes + padded(scale_bytes); }
  CHORALE_HD uint64_t packets_of(uint64_t bytes) const {
    return lines ? packet_bytes<LL128>(bytes) : packet_bytes<LL16>(bytes);
  }

  // The words of a note after its first unit, in sections of whole units.
  CHORALE_HD uint32_t counts_words() const { return uint32_t(padded(experts_per_shard * 4ull) / 4); }
  CHORALE_HD uint32_t routes_words(uint32_t tokens) const {
    return uint32_t(padded(uint64_t(tokens) * top_k * 4) / 4);
  }
  CHORALE_HD uint32_t note_words(uint32_t tokens) const {
    return 2 * counts_words() + 2 * routes_words(tokens);
  }
  CHORALE_HD uint32_t most_of_block() const { return (max_tokens + blocks - 1) / blocks; }
  CHORALE_HD uint64_t note_bytes() const {
    return packet_bytes<LL16>(sizeof(Note) + note_words(most_of_block()) * 4ull);
  }
  /// Returns the words in which a block counts: its own tokens by expert, twice; then for each sender Note's
  /// first words and two counts by expert of this shard; then one more count.
  CHORALE_HD uint64_t work_words() const {
    return 2ull * experts() + ranks() * (2ull + 2 * experts_per_shard) + experts_per_shard;
  }

  /// Returns the offsets for this shape, which follow from its other members.
  CHORALE_HD Offsets offsets() const {
    constexpr uint64_t line = 128;
    const uint64_t n = ranks();
    Offsets made{};
    uint64_t next = 0;
    const auto take = [&next](uint64_t bytes) {
      const uint64_t begin = next;
      next += (bytes + line - 1) / line * line;
      return begin;
    };
    made.notes = take(2 * n * blocks * note_bytes());
    made.token_packets = take(2 * n * packet_tokens * packets_of(payload()));
    made.token_rows = take(n * max_tokens * payload());
    made.result_packets = take(n * packet_tokens * packets_of(result_bytes));
    made.result_rows = take(n * max_tokens * result_bytes);
    made.calls = take(blocks * sizeof(Calls));
    made.work = take(blocks * work_words() * 4);
    made.routes = take(n * max_tokens * top_k * sizeof(Route));
    made.goes = take(max_tokens * sizeof(uint64_t));
    made.end = next;
    return made;
  }

  // Each of these is in `owner`'s window, in the part for `sender`.

  CHORALE_FN char* note(int32_t owner, int32_t sender, uint32_t block, uint64_t call) const {
    return window.base[owner] + at.notes +
           ((call % 2 * ranks() + uint32_t(sender)) * blocks + block) * note_bytes();
  }
  CHORALE_FN char* token_packet(int32_t owner, int32_t sender, uint32_t token, uint64_t call) const {
    return window.base[owner] + at.token_packets +
           ((call % 2 * ranks() + uint32_t(sender)) * packet_tokens + token) * packets_of(payload());
  }
  CHORALE_FN char* token_row(int32_t owner, int32_t sender, uint32_t token) const {
    return window.base[owner] + at.token_rows + (uint64_t(sender) * max_tokens + token) * payload();
  }
  CHORALE_FN char* result_packet(int32_t owner, int32_t sender, uint32_t token) const {
    return window.base[owner] + at.result_packets +
           (uint64_t(sender) * packet_tokens + token) * packets_of(result_bytes);
  }
  CHORALE_FN char* result_row(int32_t owner, int32_t sender, uint32_t token) const {
    return window.base[owner] + at.result_rows + (uint64_t(sender) * max_tokens + token) * result_bytes;
  }

  // These are in this rank's window.

  CHORALE_FN char* own() const { return window.base[window.self]; }
  CHORALE_FN Calls* calls(uint32_t block) const { return reinterpret_cast<Calls*>(own() + at.calls) + block; }
  CHORALE_FN uint32_t* totals(uint32_t block) const {
    return reinterpret_cast<uint32_t*>(own() + at.work) + block * work_words();
  }
  CHORALE_FN uint32_t* starts(uint32_t block) const { return totals(block) + experts(); }
  /// Returns a sender's number of tokens, and behind it whether they are packets.
  CHORALE_FN uint32_t* came(uint32_t block, int32_t sender) const {
    return starts(block) + experts() + uint64_t(sender) * (2ull + 2 * experts_per_shard);
  }
  CHORALE_FN uint32_t* totals_from(uint32_t block, int32_t sender) const { return came(block, sender) + 2; }
  CHORALE_FN uint32_t* starts_from(uint32_t block, int32_t sender) const {
    return totals_from(block, sender) + experts_per_shard;
  }
  CHORALE_FN uint32_t* sums(uint32_t block) const { return came(block, int32_t(ranks())); }
  CHORALE_FN Route* routes(int32_t sender, uint32_t token) const {
    return reinterpret_cast<Route*>(own() + at.routes) + (uint64_t(sender) * max_tokens + token) * top_k;
  }
  /// Returns the ranks that a token of this rank goes to, one bit per rank.
  CHORALE_FN uint64_t* goes(uint32_t token) const {
    return reinterpret_cast<uint64_t*>(own() + at.goes) + token;
  }

  /// Returns a block's part of `tokens` tokens.
  CHORALE_FN TokenRange range(uint32_t tokens, uint32_t block) const {
    return {uint32_t(uint64_t(tokens) * block / blocks), uint32_t(uint64_t(tokens) * (block + 1) / blocks)};
  }

  /// Gives the signals of a window that a sender's block uses for rows. A signal's value is the number of the
  /// call in its upper half and the number of pieces that have arrived in its lower half.
  static constexpr uint32_t signals_per_block = 2;
  CHORALE_FN static uint32_t token_signal(uint32_t block) { return signals_per_block * block; }
  CHORALE_FN static uint32_t result_signal(uint32_t block) { return signals_per_block * block + 1; }
  CHORALE_FN static uint64_t signal_value(uint64_t call, uint32_t pieces) { return call << 32 | pieces; }
};

/// Gives the tokens that a block sends before it signals. While they arrive, it takes those of its peers.
inline constexpr uint32_t tokens_per_piece = 16;

CHORALE_FN uint32_t pieces_of(const TokenRange& range) {
  return (range.size() + tokens_per_piece - 1) / tokens_per_piece;
}
/// Returns a piece of a range; empty past its end.
CHORALE_FN TokenRange piece_of(const TokenRange& range, uint32_t piece) {
  const uint32_t begin = range.begin + piece * tokens_per_piece, end = begin + tokens_per_piece;
  return {begin < range.end ? begin : range.end, end < range.end ? end : range.end};
}

namespace detail {
/// Names a form of packets without an object of it.
template <class P>
struct FormOf {
  using type = P;
};
/// Calls f(FormOf<P>{}) with the view's form of packets.
template <class F>
CHORALE_FN auto with_form(const ExpertView& view, const F& f) {
  return view.lines ? f(FormOf<LL128>{}) : f(FormOf<LL16>{});
}

/// Ends a call that is wrong on this rank. On the CPU it throws `why`; on CUDA the kernel returns the result,
/// so that the world stops and the GPU stays usable.
CHORALE_FN Stop wrong_call(const char* why) {
#if !defined(__CUDACC__)
  refuse(why);
#endif
  (void)why;
  return Stop::aborted;
}

/// Is a source of units that `unit(index)` makes, where they are; it makes at most `together` of them at a
/// time.
template <class UnitOf, uint32_t together>
struct UnitSource {
  UnitOf unit;

  static constexpr bool waits = false;
  static constexpr uint32_t at_once = together;

#if defined(__CUDACC__)
  CHORALE_FN bool may_take_several() const { return true; }
  CHORALE_FN bool whole(uint64_t) const { return true; }
  template <bool, uint32_t N>
  CHORALE_FN Stop read(const Group&, const Turn& turn, Unit (&to)[N]) const {
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      to[index] = index < turn.n ? unit(turn.unit + index * turn.stride) : Unit{};
    }
    return Stop::none;
  }
#else
  uint64_t run(uint64_t) const { return 0; }
  Stop view(const Group&, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    for (uint64_t index = 0; index < units_of(bytes); ++index) {
      const Unit held = unit(at / unit_bytes + index);
      std::memcpy(room + index * unit_bytes, &held, unit_bytes);
    }
    seen = room;
    return Stop::none;
  }
#endif
};

/// Calls f(item) for the calling warp's items of 0 .. items-1. `warp` is group.warps().
template <class F>
CHORALE_FN void each_of_warp(const Group& group, const Group& warp, uint64_t items, const F& f) {
  const uint32_t warps = group.size / warp.size;
  for (uint64_t item = warp.id % warps; item < items; item += warps) f(item);
}

/// Sets a signal of each other rank for which wants(rank) holds. Comes after everything that the group did.
template <class Wants>
CHORALE_FN void tell_ranks(const Group& group, const WindowView& window, uint32_t id, uint64_t value,
                           const Wants& wants) {
  group.sync();
  for (uint32_t step = 1 + group.rank; step < uint32_t(window.ranks); step += group.size) {
    const int32_t rank = (window.self + int32_t(step)) % window.ranks;
    if (!wants(rank)) continue;
    group.step();
    store_release(&window.signal_at(rank, window.self, id)->value, value);
  }
}
}  // namespace detail

}  // namespace chorale::fused
