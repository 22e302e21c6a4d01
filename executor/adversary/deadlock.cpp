// report_deadlock() reports which threads wait for what when no agent can go on.

#include <set>
#include <tuple>

#include "engine.hpp"
#include "executor/fibers/report.hpp"

namespace chorale::adversary {

void Engine::report_deadlock() {
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> places;
  std::vector<fibers::Stuck> stuck;
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    const Block& block = program_.blocks[program_.threads[thread].block];
    const ThreadState& state = threads_[thread];
    if (!ranks_[block.rank].running || state.pc == state.end) continue;
    const Instruction& what = program_.instructions[state.pc];
    // A thread that waits for the other threads of its block is already past the `sync` instruction.
    const bool waits = what.code == Code::await || what.code == Code::acquire || what.code == Code::arrive ||
                       what.code == Code::drain || (what.code == Code::move && what.sources != 0);
    if (!waits || !places.insert({block.rank, block.position, what.record}).second) continue;
    if (blocks_[program_.threads[thread].block].arrived != 0 && !state.begun && what.code != Code::move &&
        what.code != Code::acquire) {
      continue;
    }
    fibers::Stuck& one = stuck.emplace_back();
    one.rank = int(block.rank);
    one.block = int(block.position);
    one.parked = true;
    one.waiting.what = "";
    one.waiting.op_index = what.record;
    one.waiting.expected = epoch(block.rank);
    if (what.code == Code::await) {
      const Counter& signal = signals_[what.id];
      const Gpu& gpu = plan_.gpus[block.rank];
      uint32_t channel = what.id - program_.first_signal[block.rank];
      for (const ChannelType type : signalled_types) {
        if (channel < gpu.channel_count(type)) {
          one.waiting.peer = int(gpu.peer(type, channel));
          break;
        }
        channel -= gpu.channel_count(type);
      }
      one.waiting.expected = state.goal;
      one.waiting.word = &signal.count;
      one.seen = signal.count;
    }
    one.line = fibers::line(plan_, one);
  }
  const uint32_t rank = stuck.empty() ? 0 : uint32_t(stuck[0].rank);
  found(Verdict::Kind::deadlock, rank, 0,
        "deadlock: nothing can go on" + fibers::describe(stuck, fibers::Ranks::all));
}

}  // namespace chorale::adversary
