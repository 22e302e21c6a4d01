#include "launch_spans.hpp"

#include <algorithm>
#include <optional>

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

namespace {

/// Returns the span that ended last, of one rank or of all ranks. If several ended last, it returns the first
/// of them.
SpanPlace last_of(const LaunchSpans& spans, std::optional<uint32_t> rank) {
  SpanPlace last;
  spans.each([&](const SpanPlace& place, const TraceSpan& span) {
    if (rank && place.rank != *rank) return;
    if (last.at == SpanPlace::none || span.end_ns > spans.at(last).end_ns) last = place;
  });
  return last;
}

/// Returns the last span of the slowest rank. If several ranks are slowest, it takes the first of them.
SpanPlace last_of_slowest(const LaunchSpans& spans, uint32_t ranks) {
  SpanPlace slowest;
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const SpanPlace last = last_of(spans, rank);
    if (last.at == SpanPlace::none) continue;
    const uint64_t ns = spans.at(last).end_ns - spans.begin_of(rank);
    if (slowest.at != SpanPlace::none && ns <= most) continue;
    most = ns;
    slowest = last;
  }
  return slowest;
}

}  // namespace

WholeLaunch whole_launch(const LaunchSpans& spans, uint32_t ranks, Clocks clocks) {
  WholeLaunch whole;
  whole.last = clocks == Clocks::one ? last_of(spans, std::nullopt) : last_of_slowest(spans, ranks);
  whole.start_ns = spans.begin_of(whole.last.rank);
  for (uint32_t other = 0; clocks == Clocks::one && other < ranks; ++other)
    whole.start_ns = std::min(whole.start_ns, spans.begin_of(other));
  whole.ns = spans.at(whole.last).end_ns - whole.start_ns;
  return whole;
}

}  // namespace chorale::profile_of
