/// \file
/// Binds all ranks of a plan as the CUDA backend does (executor/cuda/binding.cpp), to memory of the host.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "executor/cpu/interpreter.hpp"
#include "executor/cpu/port.hpp"
#include "executor/cuda/multicast/multicast_plan.hpp"
#include "executor/lowering/placement.hpp"
#include "executor/lowering/rounds.hpp"
#include "tests/cpu/harness.hpp"
#include "tests/unit/fibers/scheduler_under_test.hpp"
#include "tests/unit/lowering/by_switch.hpp"
#include "tests/unit/lowering/faults.hpp"

namespace chorale::test {

/// Says how a plan is bound and run.
struct ProgramRuns {
  uint64_t bytes = 0;
  bool in_place = false;
  uint64_t shift = 0;  ///< bytes by which input and output are misaligned
  PacketForm packet = PacketForm::ll8;
  uint64_t page_bytes = lowering::LowerOptions().page_bytes;
  int launches = 4;
  uint64_t seed = 1;
  bool multicast = false;      ///< true: switch channels use multicast
  uint64_t round_scratch = 0;  ///< bytes by which messages are cut into rounds; 0: no rounds
  uint64_t loop_bytes = lowering::LowerOptions().loop_bytes;  ///< 0: pipelines are unrolled
};

class BoundRanks {
 public:
  BoundRanks(const Plan& plan, const ProgramRuns& runs)
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
      of.image = lowering::build_image(plan, rank, layout_, DType::i32, {});
      place_buffers(rank, of);
      place_control(rank, of);
    }
    for (uint32_t rank = 0; rank < n; ++rank) ranks_.push_back(record(rank));
  }

  std::vector<ProgramRank>& ranks() { return ranks_; }

  /// Does all launches, back to back.
  /// \return the first error; empty if there is none
  std::string run() {
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (const lowering::DeviceProgram& program : memory_[rank].programs) {
        const std::string fault = fault_of(program, runs_.packet, ranks_[rank].in, ranks_[rank].out);
        if (!fault.empty()) return "rank " + std::to_string(rank) + ": " + fault;
      }
    }
    SchedulerUnderTest under_test(int(plan_.ranks()), 1, runs_.seed);
    std::string wrong;
    const Note note = [&wrong](const std::string& what) {
      if (wrong.empty()) wrong = what;
    };
    under_test.run([&](int rank) {
      Launches launches(under_test.scheduler, *this, uint32_t(rank), note);
      for (int launch = 0; launch < runs_.launches; ++launch) {
        begin(uint32_t(rank), launch);
        for (uint64_t round = 0; round < layout_.rounds(); ++round) {
          if (launches.launch(round) != Stop::none) return note("stopped: " + under_test.why);
        }
        note_result(uint32_t(rank), launch, note);
      }
    });
    for (Lines& one : stand_ins_) {
      const bool touched =
          std::any_of(one.data(), one.data() + room_.bytes, [](char is) { return is != canary; });
      if (touched) return "a switch's address was written as if it were memory";
    }
    return wrong;
  }

 private:
  static constexpr char canary = char(0xc5), fresh = char(0xee);
  static constexpr uint64_t guard = 128;

  struct Memory {
    lowering::BoundImage image;
    Lines user_in, user_out, own, control, local, room;
    char *in = nullptr, *out = nullptr;  ///< the caller's buffers
    lowering::Placed placed;
    uint64_t plain = 0, packets = 0;                ///< the places in `control` at which scratch begins
    std::vector<lowering::DeviceProgram> programs;  ///< in the order of lowering::rounds_of_all_shapes()
  };

  /// Runs the launches of one rank.
  class Launches {
   public:
    Launches(fibers::Scheduler& scheduler, BoundRanks& bound, uint32_t rank, const Note& note)
        : scheduler_(scheduler), bound_(bound), rank_(rank), proxy_(scheduler), here_(bound.plan_.ranks()) {
      ProgramRank& of = bound.ranks_[rank];
      run_.rank = rank;
      run_.packet = bound.runs_.packet;
      run_.dtype = DType::i32;
      run_.states = of.states.data();
      for (size_t at = 0; at < of.places.signals.size(); ++at)
        run_.channels.push_back({.signal_at_peer = of.places.signals_at_peer[at]});
      run_.completed = const_cast<Signal*>(of.places.completed);
      run_.fifo = &proxy_.fifo();
      run_.published = here_.data();
      run_.by_switch = [&of, note](const Group& group, const lowering::ProgramStep& step, const Mem* places) {
        return by_switch(note, group, of, step, places);
      };
      for (const lowering::DeviceProgram& program : bound.memory_[rank].programs)
        interpreter_bytes_ = std::max(interpreter_bytes_, cpu::Interpreter::memory_bytes(program));
      interpreter_memory_.resize(of.program.blocks * interpreter_bytes_);
    }

    Stop launch(uint64_t round) {
      const ProgramRank& of = bound_.ranks_[rank_];
      run_.program = &bound_.program_of(rank_, round);
      ++run_.epoch;
      run_.skip = round * bound_.layout_.slice_bytes;
      run_.in = of.in + run_.skip;
      run_.out = of.out + run_.skip;
      const int blocks = int(run_.program->blocks);
      blocks_left_ = blocks;
      const auto body = [&](int block, fibers::BlockHost& host) {
        if (block == blocks) return proxy_.run_fiber(host, blocks_left_);
        cpu::Interpreter(run_, uint32_t(block), host,
                         interpreter_memory_.data() + size_t(block) * interpreter_bytes_)
            .run();
        --blocks_left_;
      };
      return scheduler_.launch(int(rank_), blocks + 1, body).stop;
    }

   private:
    fibers::Scheduler& scheduler_;
    BoundRanks& bound_;
    const uint32_t rank_;
    cpu::Proxy proxy_;
    const std::vector<cpu::Published*> here_;  ///< none: programs have addresses of all memory
    cpu::Run run_;
    std::vector<char> interpreter_memory_;
    size_t interpreter_bytes_ = 0;
    std::atomic<int> blocks_left_{0};
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
    lowering::StagingMemory staging;
    staging.own = [&of] { return of.own.data(); };
    of.room = Lines(room_.bytes);
    if (use_.passed) {
      char* const first = of.room.data();
      staging.shared = [first] { return first; };
      staging.reachable = [this, first](const char* at, uint64_t bytes) {
        return at >= first && at + bytes <= first + room_.bytes;
      };
    }
    of.placed = lowering::Placement(plan_, rank, layout_).place(of.in, of.out, staging);
  }

  void place_control(uint32_t rank, Memory& of) {
    const lowering::ScratchBytes scratch = lowering::scratch_bytes(scratch_use(plan_)[rank], layout_);
    of.plain = of.image.channels.size() * sizeof(Signal);
    of.packets = of.plain + scratch.plain();
    of.control = Lines(of.packets + scratch.packets());
  }

  ProgramRank record(uint32_t rank) {
    Memory& of = memory_[rank];
    for (image::Buffer& buffer : of.image.buffers) {
      Memory& there = memory_[buffer.rank];
      if (buffer.kind == uint32_t(BufferKind::input)) buffer.base = there.placed.in;
      if (buffer.kind == uint32_t(BufferKind::output)) buffer.base = there.placed.out;
      if (buffer.kind == uint32_t(BufferKind::scratch)) {
        buffer.base =
            use_.scratch ? there.room.data() + room_.scratch_at : there.control.data() + there.plain;
      }
      if (buffer.kind == lowering::packet_kind) buffer.base = there.control.data() + there.packets;
    }
    ProgramRank result;
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
    for (const uint64_t round : lowering::rounds_of_all_shapes(layout_)) {
      result.places.skip = round * layout_.slice_bytes;
      of.programs.push_back(
          lowering::lower(of.image, result.places, runs_.packet,
                          {.page_bytes = runs_.page_bytes, .loop_bytes = runs_.loop_bytes}));
      EXPECT_EQ(of.programs.back().state_bytes, of.programs[0].state_bytes);
    }
    result.program = of.programs[0];
    result.states = Lines(uint64_t(result.program.blocks) * result.program.state_bytes);
    result.places.switches = nullptr;  // `result` is used elsewhere
    result.in = of.placed.in;
    result.out = of.placed.out;
    return result;
  }

  std::vector<lowering::SwitchAlias> aliases_of(uint32_t rank) {
    std::vector<lowering::SwitchAlias> all;
    for (size_t group = 0; group < use_.groups.size(); ++group) {
      const std::vector<uint32_t>& members = use_.groups[group];
      if (std::find(members.begin(), members.end(), rank) == members.end()) continue;
      lowering::SwitchAlias& alias =
          all.emplace_back(lowering::SwitchAlias{{}, stand_ins_[group].data(), room_.bytes});
      for (const uint32_t member : members) alias.members.push_back(memory_[member].room.data());
    }
    return all;
  }

  static void move(const lowering::Move& of) {
    if (of.needed()) std::memmove(of.to, of.from, of.bytes);
  }

  const lowering::DeviceProgram& program_of(uint32_t rank, uint64_t round) const {
    const std::vector<uint64_t> known = lowering::rounds_of_all_shapes(layout_);
    size_t shape = 0;
    while (!(lowering::shape_of_round(layout_, known[shape]) == lowering::shape_of_round(layout_, round)))
      ++shape;
    return memory_[rank].programs[shape];
  }

  /// Writes new data, and copies what the backend copies before a launch.
  void begin(uint32_t rank, int launch) {
    Memory& of = memory_[rank];
    const uint64_t most =
        runs_.in_place ? std::max(layout_.sizes.input, layout_.sizes.output) : layout_.sizes.output;
    std::memset(of.user_out.data() + guard + runs_.shift, fresh, most);
    const Ints data = input_of(rank, layout_.sizes.input, launch);
    if (!data.empty()) std::memcpy(of.in, data.data(), data.size() * 4);
    move(of.placed.before[1]);
    move(of.placed.before[0]);
  }

  void note_result(uint32_t rank, int launch, const Note& note) {
    const std::string wrong = result(rank, launch);
    if (!wrong.empty()) note(wrong);
  }

  std::string result(uint32_t rank, int launch) {
    Memory& of = memory_[rank];
    move(of.placed.after);
    const std::string where = "rank " + std::to_string(rank) + " launch " + std::to_string(launch);
    const Ints expected = output_of(plan_, rank, layout_.sizes, launch);
    Ints seen(expected.size());
    if (!seen.empty()) std::memcpy(seen.data(), of.out, seen.size() * 4);
    const auto [wanted, found] = std::mismatch(expected.begin(), expected.end(), seen.begin());
    if (wanted != expected.end()) {
      return where + " element " + std::to_string(found - seen.begin()) + " of " +
             std::to_string(expected.size()) + ": " + std::to_string(*found) + ", not " +
             std::to_string(*wanted);
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
  const ProgramRuns runs_;
  const Layout layout_;
  const cuda::SwitchUse use_;
  const cuda::SwitchRoom room_;
  std::deque<Lines> stand_ins_;  ///< by group: addresses that only a switch knows
  std::deque<Memory> memory_;
  std::vector<ProgramRank> ranks_;
};

}  // namespace chorale::test
