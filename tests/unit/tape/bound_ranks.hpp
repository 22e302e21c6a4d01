/// \file
/// All ranks of a plan bound as the CUDA backend binds them (executor/cuda/binding.cpp), to memory of the
/// host.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "executor/cuda/multicast_plan.hpp"
#include "executor/interpreter/placement.hpp"
#include "executor/interpreter/rounds.hpp"
#include "tests/cpu/harness.hpp"
#include "tests/unit/tape/host_player.hpp"

namespace chorale::test {

/// Says how a plan is bound and run.
struct TapeRuns {
  uint64_t bytes = 0;
  bool in_place = false;
  uint64_t shift = 0;  ///< bytes by which input and output miss their alignment
  PacketForm packet = PacketForm::ll8;
  uint64_t page_bytes = cuda::default_page_bytes;
  int launches = 4;
  uint64_t seed = 1;
  bool multicast = false;      ///< switch channels go by it
  uint64_t round_scratch = 0;  ///< bytes by which messages are cut into rounds; 0: they are not
};

class BoundRanks {
 public:
  BoundRanks(const Plan& plan, const TapeRuns& runs)
      : plan_(plan),
        runs_(runs),
        layout_(in_rounds(plan, scratch_use(plan), layout_of(plan, runs.bytes, DType::i32, runs.packet),
                          runs.round_scratch)),
        use_(runs.multicast ? cuda::SwitchUse(plan) : cuda::SwitchUse()),
        room_(plan, layout_, use_) {
    const uint32_t n = plan.ranks();
    for (size_t group = 0; group < use_.groups.size(); ++group) {
      std::memset(stand_ins_.emplace_back(room_.bytes).data(), canary, room_.bytes);
    }
    for (uint32_t rank = 0; rank < n; ++rank) {
      Memory& of = memory_.emplace_back();
      of.image = interpreter::build_image(plan, rank, layout_, DType::i32, {});
      place_buffers(rank, of);
      place_control(rank, of);
    }
    for (uint32_t rank = 0; rank < n; ++rank) ranks_.push_back(record(rank));
  }

  std::vector<TapeRank>& ranks() { return ranks_; }

  /// Does all launches, back to back.
  /// \return what went wrong first; empty if nothing did
  std::string play() {
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) begin(rank);
    std::string wrong;
    HostPlayer player(ranks_, runs_.packet, runs_.seed, [&](uint32_t rank) {
      if (next_round(rank)) return true;
      const std::string mine = result(rank);
      if (wrong.empty() && !mine.empty()) wrong = mine;
      if (++memory_[rank].launch == runs_.launches) return false;
      begin(rank);
      return true;
    });
    const std::string stuck = player.play();
    for (Lines& one : stand_ins_) {
      const bool touched =
          std::any_of(one.data(), one.data() + room_.bytes, [](char is) { return is != canary; });
      if (touched) return "a switch's address was written as if it were memory";
    }
    return stuck.empty() ? wrong : stuck;
  }

 private:
  static constexpr char canary = char(0xc5), fresh = char(0xee);
  static constexpr uint64_t guard = 128;

  struct Memory {
    interpreter::BoundImage image;
    Lines user_in, user_out, own, control, local, room;
    char *in = nullptr, *out = nullptr;  ///< the caller's
    interpreter::Placed placed;
    uint64_t plain = 0, packets = 0;  ///< the places at which scratch begins in `control`
    std::vector<cuda::Tapes> tapes;   ///< in the order of interpreter::rounds_of_all_shapes()
    int launch = 0;
    uint64_t round = 0;
  };

  void place_buffers(uint32_t rank, Memory& of) {
    const auto [in_bytes, out_bytes] = layout_.sizes;
    const uint64_t most = std::max(in_bytes, out_bytes) + 2 * guard + runs_.shift;
    of.user_in = Lines(most);
    of.user_out = Lines(most);
    std::memset(of.user_out.data(), canary, most);
    of.in = of.user_in.data() + guard + runs_.shift;
    of.out = of.user_out.data() + guard + runs_.shift;
    if (runs_.in_place) {
      of.in = of.out + (plan_.collective == "allgather" ? rank * in_bytes : 0);
      if (plan_.collective == "reducescatter") of.out += rank * out_bytes;
    }
    of.own = Lines(in_bytes);
    interpreter::Rooms rooms;
    rooms.own = [&of] { return of.own.data(); };
    of.room = Lines(room_.bytes);
    if (use_.passed) {
      char* const first = of.room.data();
      rooms.shared = [first] { return first; };
      rooms.reachable = [this, first](const char* at, uint64_t bytes) {
        return at >= first && at + bytes <= first + room_.bytes;
      };
    }
    of.placed = interpreter::Placement(plan_, rank, layout_).place(of.in, of.out, rooms);
  }

  void place_control(uint32_t rank, Memory& of) {
    const interpreter::ScratchBytes scratch = interpreter::scratch_bytes(scratch_use(plan_)[rank], layout_);
    of.plain = of.image.channels.size() * sizeof(Signal);
    of.packets = of.plain + scratch.plain();
    of.control = Lines(of.packets + scratch.packets());
  }

  TapeRank record(uint32_t rank) {
    Memory& of = memory_[rank];
    for (image::Buffer& buffer : of.image.buffers) {
      Memory& there = memory_[buffer.rank];
      if (buffer.kind == uint32_t(BufferKind::input)) buffer.base = there.placed.in;
      if (buffer.kind == uint32_t(BufferKind::output)) buffer.base = there.placed.out;
      if (buffer.kind == uint32_t(BufferKind::scratch)) {
        buffer.base =
            use_.scratch ? there.room.data() + room_.scratch_at : there.control.data() + there.plain;
      }
      if (buffer.kind == interpreter::packet_kind) buffer.base = there.control.data() + there.packets;
    }
    TapeRank result;
    result.blocks = uint32_t(of.image.blocks.size());
    const size_t channels = of.image.channels.size(), semaphores = of.image.semaphores.size();
    of.local =
        Lines((channels + semaphores + of.image.barriers) * sizeof(Signal) + 2 * channels * sizeof(uint64_t));
    auto* const completed = reinterpret_cast<Signal*>(of.local.data());
    result.places.completed = completed;
    result.places.semaphores = reinterpret_cast<Semaphore*>(completed + channels);
    result.places.barriers = completed + channels + semaphores;
    result.places.expected = reinterpret_cast<uint64_t*>(result.places.barriers + of.image.barriers);
    result.places.pushed = result.places.expected + channels;
    for (size_t at = 0; at < semaphores; ++at) result.places.semaphores[at].permits = of.image.semaphores[at];
    const auto* const mine = reinterpret_cast<const Signal*>(of.control.data());
    for (size_t at = 0; at < channels; ++at) result.places.signals.push_back(mine + at);
    for (const image::Channel& channel : of.image.channels) {
      const bool heard = channel.signal_at_peer != image::Channel::none;
      auto* const signals = reinterpret_cast<Signal*>(memory_[channel.peer].control.data());
      result.places.signals_at_peer.push_back(heard ? signals + channel.signal_at_peer : nullptr);
    }
    result.switches = {aliases_of(rank), of.placed.in, of.placed.out};
    result.places.switches = use_.any() ? &result.switches : nullptr;
    for (const uint64_t round : interpreter::rounds_of_all_shapes(layout_)) {
      result.places.skip = round * layout_.slice_bytes;
      of.tapes.push_back(cuda::record_tapes(of.image, result.places, runs_.packet, runs_.page_bytes));
      EXPECT_EQ(of.tapes.back().state_bytes, of.tapes[0].state_bytes);
    }
    result.tapes = of.tapes[0];
    result.states = Lines(uint64_t(result.blocks) * result.tapes.state_bytes);
    result.places.switches = nullptr;  // `result` goes elsewhere
    result.in = of.placed.in;
    result.out = of.placed.out;
    return result;
  }

  std::vector<cuda::SwitchAlias> aliases_of(uint32_t rank) {
    std::vector<cuda::SwitchAlias> all;
    for (size_t group = 0; group < use_.groups.size(); ++group) {
      const std::vector<uint32_t>& members = use_.groups[group];
      if (std::find(members.begin(), members.end(), rank) == members.end()) continue;
      cuda::SwitchAlias& alias =
          all.emplace_back(cuda::SwitchAlias{{}, stand_ins_[group].data(), room_.bytes});
      for (const uint32_t member : members) alias.members.push_back(memory_[member].room.data());
    }
    return all;
  }

  static void move(const interpreter::Move& of) {
    if (of.needed()) std::memmove(of.to, of.from, of.bytes);
  }

  /// Goes to the next round as Launcher::launch() does. Returns false after the last one.
  bool next_round(uint32_t rank) {
    Memory& of = memory_[rank];
    of.round = (of.round + 1) % layout_.rounds();
    const std::vector<uint64_t> known = interpreter::rounds_of_all_shapes(layout_);
    size_t shape = 0;
    while (!(interpreter::shape_of_round(layout_, known[shape]) ==
             interpreter::shape_of_round(layout_, of.round)))
      ++shape;
    TapeRank& player = ranks_[rank];
    player.tapes = of.tapes[shape];
    player.skip = of.round * layout_.slice_bytes;
    player.in = of.placed.in + player.skip;
    player.out = of.placed.out + player.skip;
    return of.round != 0;
  }

  /// Brings new data, and copies what the backend copies before a launch.
  void begin(uint32_t rank) {
    Memory& of = memory_[rank];
    const uint64_t most =
        runs_.in_place ? std::max(layout_.sizes.input, layout_.sizes.output) : layout_.sizes.output;
    std::memset(of.user_out.data() + guard + runs_.shift, fresh, most);
    const Ints data = input_of(rank, layout_.sizes.input, of.launch);
    if (!data.empty()) std::memcpy(of.in, data.data(), data.size() * 4);
    move(of.placed.before[1]);
    move(of.placed.before[0]);
  }

  std::string result(uint32_t rank) {
    Memory& of = memory_[rank];
    move(of.placed.after);
    const std::string where = "rank " + std::to_string(rank) + " launch " + std::to_string(of.launch);
    const Ints expected = output_of(plan_, rank, layout_.sizes, of.launch);
    for (size_t at = 0; at < expected.size(); ++at) {
      int32_t seen;
      std::memcpy(&seen, of.out + at * 4, 4);
      if (seen == expected[at]) continue;
      return where + " element " + std::to_string(at) + " of " + std::to_string(expected.size()) + ": " +
             std::to_string(seen) + ", not " + std::to_string(expected[at]);
    }
    const uint64_t most =
        runs_.in_place ? std::max(layout_.sizes.input, layout_.sizes.output) : layout_.sizes.output;
    const char* const first = of.user_out.data();
    const char* const behind = first + guard + runs_.shift + most;
    const auto written = [](char one) { return one != canary; };
    if (std::any_of(first, first + guard + runs_.shift, written) ||
        std::any_of(behind, behind + guard, written)) {
      return where + ": bytes beside the output were written";
    }
    return "";
  }

  const Plan plan_;
  const TapeRuns runs_;
  const Layout layout_;
  const cuda::SwitchUse use_;
  const cuda::SwitchRoom room_;
  std::deque<Lines> stand_ins_;  ///< by group: addresses that only a switch knows
  std::deque<Memory> memory_;
  std::vector<TapeRank> ranks_;
};

}  // namespace chorale::test
