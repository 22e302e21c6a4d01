/// \file
/// Converts spans of a trace to the form in which ranks send them, also to other processes. The form leaves
/// out what the plan already says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chorale/executor.hpp"

namespace chorale::tools {

struct SentSpan {
  uint32_t rank, block, op, spare;
  uint64_t launch, begin_ns, end_ns, bytes;
};

std::vector<SentSpan> to_send(const std::vector<TraceSpan>& spans);

/// Adds the spans in `bytes`, which holds whole SentSpans of launches of `plan`.
void add_sent(std::vector<TraceSpan>& spans, std::span<const std::byte> bytes, const Plan& plan);

}  // namespace chorale::tools
