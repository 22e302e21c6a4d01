// This rewrite removes the synchronisations of threads without which every proof still holds. It runs only if
// it is asked for: it leaves the least that the program needs, and none to be on the safe side.
//
// It is right because each removal is proved anew, and taken back if a proof finds something. All ranks lose
// the same: first every thread block that has the operation at the same position and line, and if that is too
// much the blocks of one position. A plan that is not proved to begin with stays as it is.
//
// It costs a proof for each line and position with a nop, and one more for each thread block if not all of
// them can do without. So it comes before the program is replicated, whose instances do not meet.

#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "../plan/erase_op.hpp"
#include "chorale/compile.hpp"
#include "chorale/proof.hpp"

namespace chorale {
namespace {

/// Names the operation at one position of some thread blocks, which is a nop in all of them.
struct Syncs {
  uint32_t op = 0;
  std::vector<ThreadBlock*> blocks;
};

/// Lists the nops by `key` of a thread block's position and the nop in it. Later ones come first, so that
/// removing some leaves the positions of the others.
template <class Key>
auto list_syncs(Plan& plan, Key&& key) {
  std::map<decltype(key(0u, plan.gpus[0].threadblocks[0], 0u)), Syncs, std::greater<>> groups;
  for (Gpu& gpu : plan.gpus) {
    for (uint32_t position = 0; position < gpu.threadblocks.size(); ++position) {
      ThreadBlock& block = gpu.threadblocks[position];
      for (uint32_t op = 0; op < block.ops.size(); ++op) {
        if (block.ops[op].code != Opcode::nop) continue;
        Syncs& syncs = groups[key(position, block, op)];
        syncs.op = op;
        syncs.blocks.push_back(&block);
      }
    }
  }
  return groups;
}

bool proved(const Plan& plan) { return prove_plan(plan).findings.empty(); }

/// Removes these if the proofs hold without them.
bool try_without(Plan& plan, const Syncs& syncs) {
  std::vector<std::vector<Op>> before;
  for (ThreadBlock* block : syncs.blocks) {
    before.push_back(block->ops);
    erase_op(block->ops, syncs.op);
  }
  if (proved(plan)) return true;
  for (size_t at = 0; at < before.size(); ++at) syncs.blocks[at]->ops = std::move(before[at]);
  return false;
}

}  // namespace

bool pass::minimize_syncs(Plan& plan, const CompileOptions& options) {
  if (!options.minimize_syncs || plan.gpus.empty() || !check(plan).empty() || !proved(plan)) return false;
  bool changed = false;
  const auto by_line = [](uint32_t, const ThreadBlock& block, uint32_t op) {
    return std::tuple(op, block.ops.size(), block.ops[op].at);
  };
  for (const auto& [key, syncs] : list_syncs(plan, by_line)) changed |= try_without(plan, syncs);
  const auto by_block = [](uint32_t position, const ThreadBlock&, uint32_t op) {
    return std::tuple(op, position);
  };
  for (const auto& [key, syncs] : list_syncs(plan, by_block)) changed |= try_without(plan, syncs);
  return changed;
}

}  // namespace chorale
