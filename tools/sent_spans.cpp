#include "tools/sent_spans.hpp"

#include <cstring>

namespace chorale::tools {

std::vector<SentSpan> to_send(const std::vector<TraceSpan>& spans) {
  std::vector<SentSpan> sent;
  for (const TraceSpan& span : spans) {
    sent.push_back({span.rank, span.block, span.op, 0, span.launch, span.begin_ns, span.end_ns, span.bytes});
  }
  return sent;
}

void add_sent(std::vector<TraceSpan>& spans, std::span<const std::byte> bytes, const Plan& plan) {
  for (size_t at = 0; at + sizeof(SentSpan) <= bytes.size(); at += sizeof(SentSpan)) {
    SentSpan one;
    std::memcpy(&one, bytes.data() + at, sizeof one);
    const Op& op = plan.gpus[one.rank].threadblocks[one.block].ops[one.op];
    spans.push_back({plan.name, one.rank, one.block, one.op, info(op.code).name, plan.line_of(op), one.launch,
                     one.begin_ns, one.end_ns, one.bytes});
  }
}

}  // namespace chorale::tools
