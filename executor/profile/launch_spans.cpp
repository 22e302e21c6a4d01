#include "launch_spans.hpp"

#include <algorithm>

namespace chorale::profile_of {

LaunchSpans::LaunchSpans(const Plan& plan, std::span<const TraceSpan> spans, uint64_t bytes)
    : plan_(plan), begins_(plan.ranks(), never) {
  const auto ours = [&](const TraceSpan& span) {
    return span.bytes == bytes && span.plan == plan.name && span.rank < plan.ranks() &&
           span.block < plan.gpus[span.rank].threadblocks.size() &&
           span.op < plan.gpus[span.rank].threadblocks[span.block].ops.size();
  };
  for (const TraceSpan& span : spans) {
    if (ours(span)) launch_ = std::max(launch_, span.launch);
  }
  for (const Gpu& gpu : plan.gpus) blocks_.emplace_back(gpu.threadblocks.size());
  for (const TraceSpan& span : spans) {
    if (!ours(span) || span.launch != launch_) continue;
    blocks_[span.rank][span.block].spans.push_back(&span);
    begins_[span.rank] = std::min(begins_[span.rank], span.begin_ns);
  }
  for (uint32_t rank = 0; rank < blocks_.size(); ++rank) {
    for (uint32_t block = 0; block < blocks_[rank].size(); ++block) {
      Block& of = blocks_[rank][block];
      // Spans that begin at the same time stay in the plan's order.
      std::stable_sort(of.spans.begin(), of.spans.end(), [](const TraceSpan* a, const TraceSpan* b) {
        return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->op < b->op;
      });
      of.holders.assign(plan.gpus[rank].threadblocks[block].ops.size(), SpanPlace::none);
      for (uint32_t at = 0; at < of.spans.size(); ++at) of.holders[of.spans[at]->op] = at;
      for (size_t op = 1; op < of.holders.size(); ++op) {
        if (of.holders[op] == SpanPlace::none) of.holders[op] = of.holders[op - 1];
      }
    }
  }
}

SpanPlace LaunchSpans::holder(const OpPlace& place) const {
  return {place.rank, place.threadblock, blocks_[place.rank][place.threadblock].holders[place.op]};
}

}  // namespace chorale::profile_of
