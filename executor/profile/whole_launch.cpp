#include "whole_launch.hpp"

#include <algorithm>
#include <optional>

namespace chorale::profile_of {
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
