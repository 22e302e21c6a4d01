#include "lines.hpp"

namespace chorale {

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
