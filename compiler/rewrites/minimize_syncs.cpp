// This rewrite removes thread synchronisations without which every proof still holds. It runs only on
// request, because it leaves only those that the proofs need and no safety margin.
//
// It is correct because every removal is proved again, and undone if a proof finds something. All ranks lose
// the same ones. It first tries every thread block that has the operation at the same position and line, and
// if a proof then fails, the blocks of one position. A plan that is not proved at the beginning stays
// unchanged.
//
// It costs one proof per line and position with a nop, and one more per thread block if not all of them can
// go. So it runs before the program is replicated, because instances do not affect each other.

#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "chorale/checks.hpp"
#include "chorale/proof.hpp"
#include "chorale/rewrites.hpp"
#include "compiler/plan/erase_op.hpp"
#include "compiler/plan/progress.hpp"

namespace chorale {
namespace {

/// Names one position in some thread blocks. The operation there is a nop in all of them.
struct Syncs {
  uint32_t op = 0;
  std::vector<ThreadBlock*> blocks;
};

/// Lists the nops by `key` of a thread block's position and the nop in it. Later ones come first, so the
/// positions of the others stay valid when some are removed.
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

/// Removes these nops if the proofs hold without them.
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
  // Most of the time goes to the first list.
  const auto try_all = [&](const auto& groups, double begin, double end) {
    const ProgressPart whole(begin, end);
    double at = 0;
    for (const auto& [key, syncs] : groups) {
      const ProgressPart this_part(at / double(groups.size()), (at + 1) / double(groups.size()));
      ++at;
      changed |= try_without(plan, syncs);
    }
  };
  const auto by_line = [](uint32_t, const ThreadBlock& block, uint32_t op) {
    return std::tuple(op, block.ops.size(), block.ops[op].at);
  };
  try_all(list_syncs(plan, by_line), 0, 0.8);
  const auto by_block = [](uint32_t position, const ThreadBlock&, uint32_t op) {
    return std::tuple(op, position);
  };
  try_all(list_syncs(plan, by_block), 0.8, 1);
  return changed;
}

}  // namespace chorale
