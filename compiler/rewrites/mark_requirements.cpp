// This rewrite marks what a plan needs that MSCCL++'s executor lacks or ignores. It adds a word to the list
// of requirements and puts an operation that MSCCL++ does not know in front of rank 0's operations. MSCCL++'s
// loader refuses unknown operations and nothing else: it computes a sum for every reduction and skips a
// flush.
//
// It is correct because the operation does nothing. A plan that MSCCL++ can run does not get one, and neither
// does a plan that already has an operation that only Chorale has. It costs one operation that does nothing.

#include <algorithm>

#include "chorale/rewrites.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

bool is_ours(const Op& op) { return is_extension(info(op.code).mnemonic); }

/// Returns the requirement of an operation; "" if there is none.
std::string_view requirement(const Op& op) {
  const Shape& row = shape(op.code);
  // The mark itself stands for the requirements of other operations.
  if (is_ours(op) && op.code != Opcode::require) return name_of_extension(info(op.code).mnemonic);
  const std::string_view via = channel_type_names[size_t(op.via)];
  if (is_extension(via)) return name_of_extension(via);
  if (row.has(Role::Reduce) && op.reduce_op != ReduceOp::sum) return "reduce_op";
  // An operation that drains and moves no data is a separate flush.
  if (row.has(Role::Drain) && row.sources.empty()) return "flush";
  if (row.has(Role::SwitchRead) && !row.has(Role::SwitchWrite)) return "switch_reduce";
  return {};
}

bool holds_mark(const Plan& plan) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (is_ours(op)) return true;
      }
    }
  }
  return false;
}

}  // namespace

bool pass::mark_requirements(Plan& plan, const CompileOptions& options) {
  // The target mscclpp reports what MSCCL++ lacks, unless the user allowed it.
  if (options.target == Target::mscclpp) return false;
  std::vector<std::string>& listed = plan.extension.requirements;
  bool changed = false;
  if (!plan.extension.codecs.empty() && std::find(listed.begin(), listed.end(), "codecs") == listed.end()) {
    listed.emplace_back("codecs");
    changed = true;
  }
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
