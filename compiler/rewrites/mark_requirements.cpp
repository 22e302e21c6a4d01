// This rewrite says what a plan needs that MSCCL++'s executor lacks or ignores. It adds a word to the list of
// requirements, and at the head of rank 0 an operation that MSCCL++ does not know. The loader of MSCCL++
// refuses an unknown operation, but nothing else: it computes a sum for every reduction, and passes over a
// flush.
//
// It is right because the operation does nothing, and a plan within MSCCL++'s means gets none. A plan that
// has an operation of ours anyway gets none either. It costs one operation that does nothing.

#include <algorithm>

#include "../plan/roles.hpp"
#include "chorale/compile.hpp"

namespace chorale {
namespace {

bool is_extension(const Op& op) { return info(op.code).mnemonic.starts_with("chorale_"); }

/// Returns the requirement of an operation; "" if it has none.
std::string_view requirement(const Op& op) {
  const Shape& row = shape(op.code);
  // The mark itself stands for other operations' requirements.
  if (is_extension(op) && op.code != Opcode::require) return info(op.code).name;
  if (row.has(Role::Reduce) && op.reduce_op != ReduceOp::sum) return "reduce_op";
  // An operation that drains without moving data is a flush of its own.
  if (row.has(Role::Drain) && row.sources.empty()) return "flush";
  if (row.has(Role::SwitchRead) && !row.has(Role::SwitchWrite)) return "switch_reduce";
  return {};
}

bool holds_mark(const Plan& plan) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (is_extension(op)) return true;
      }
    }
  }
  return false;
}

}  // namespace

bool pass::mark_requirements(Plan& plan, const CompileOptions& options) {
  // The target mscclpp reports what MSCCL++ lacks, unless that was allowed.
  if (options.target == Target::mscclpp) return false;
  std::vector<std::string>& listed = plan.extension.requirements;
  bool changed = false;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        const std::string_view feature = requirement(op);
        if (feature.empty() || std::find(listed.begin(), listed.end(), feature) != listed.end()) continue;
        listed.emplace_back(feature);
        changed = true;
      }
    }
  }
  if (listed.empty() || plan.gpus.empty() || holds_mark(plan)) return changed;
  std::vector<ThreadBlock>& blocks = plan.gpus[0].threadblocks;
  if (blocks.empty()) blocks.emplace_back();
  Op mark;
  mark.code = Opcode::require;
  blocks[0].ops.insert(blocks[0].ops.begin(), mark);
  return true;
}

}  // namespace chorale
