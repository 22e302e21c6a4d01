#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bind.hpp"
#include "chorale/plan.hpp"
#include "chorale/trace_span.hpp"
#include "trace.hpp"

namespace chorale::lowering {

/// Returns a trace with room for `launches` launches of `image`. It has no entries yet.
Trace trace_of(const BoundImage& image, uint32_t launches);

/// Adds the spans that the blocks of `rank` have recorded in `entries`; `trace` gives the layout. An
/// operation ends when the next one of its block begins.
void add_spans(std::vector<TraceSpan>& spans, const Trace& trace, std::span<const TraceEntry> entries,
               const Plan& plan, uint32_t rank);

}  // namespace chorale::lowering
