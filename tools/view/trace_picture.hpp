/// \file
/// Reads traces that `chorale run`, `bench`, `simulate` and `check --witness` write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/trace_span.hpp"
#include "tools/view/picture.hpp"

namespace chorale::tools {

/// Returns whether a file's text is a trace, and not a plan.
bool is_trace(std::string_view text);

/// Returns the spans of the last launch of `plan` in a trace.
/// \param bytes  the size of the message
/// \param backend  if given: receives where it was measured, as write_trace() wrote it; empty if the trace
/// does
///   not say it
/// \throws Failure if the text is not a trace, or if it has no launch of the plan
std::vector<TraceSpan> spans_of(const Plan& plan, const std::string& text, const std::string& file,
                                uint64_t bytes, std::string* backend = nullptr);

/// Returns the heading of a trace, such as "measured on the CPU: trace.json".
std::string trace_title(const std::string& backend, const std::string& file);

/// Makes the picture of a trace alone. It has all launches that the trace has.
/// \throws Failure if the text is not a trace
Picture picture_of_trace(const std::string& text, const std::string& file);

}  // namespace chorale::tools
