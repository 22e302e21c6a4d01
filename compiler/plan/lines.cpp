#include "lines.hpp"

namespace chorale {

const Op* find_op(const Plan& plan, const OpPlace& at) {
  if (at.rank >= plan.gpus.size()) return nullptr;
  const Gpu& gpu = plan.gpus[at.rank];
  if (at.threadblock >= gpu.threadblocks.size()) return nullptr;
  const std::vector<Op>& ops = gpu.threadblocks[at.threadblock].ops;
  return at.op < ops.size() ? &ops[at.op] : nullptr;
}

SourceLine author_line(const Plan& plan, const SourceLine& line, const std::optional<OpPlace>& at) {
  const Op* op = at ? find_op(plan, *at) : nullptr;
  return !line.line && op && plan.first_at(*op) <= plan.source.size() ? plan.line_of(*op) : line;
}

SourceLine line_of_entry(const Plan& plan, const Op& op, OpList list, size_t position) {
  size_t end = 0;
  for (const JoinedCall& call : plan.calls_of(op)) {
    end += list == OpList::sources ? call.sources : list == OpList::ids ? call.ids : call.destinations;
    if (position < end) return plan.source[call.at - 1];
  }
  return plan.line_of(op);
}

SourceLine last_line_of(const Plan& plan, const Op& op) {
  const std::span<const JoinedCall> calls = plan.calls_of(op);
  return calls.empty() ? plan.line_of(op) : plan.source[calls.back().at - 1];
}

}  // namespace chorale
