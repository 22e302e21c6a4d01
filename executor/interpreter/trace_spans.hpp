/// \file
/// From what blocks have noted to what Executor::trace gives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bind.hpp"
#include "chorale/executor.hpp"
#include "trace.hpp"

namespace chorale::interpreter {

/// A trace of `launches` of what `image` has, without entries yet.
Trace trace_of(const BoundImage& image, uint32_t launches);

/// Adds what the blocks of `rank` have noted: `entries`, shaped by `trace`. An operation ends where the next
/// one of its block begins.
void add_spans(std::vector<TraceSpan>& spans, const Trace& trace, std::span<const TraceEntry> entries,
               const Plan& plan, uint32_t rank);

}  // namespace chorale::interpreter
