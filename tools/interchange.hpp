/// \file
/// Writes plans in the formats of other tools: docs/interchange.md.
#pragma once

#include <string>

#include "chorale/interchange.hpp"
#include "chorale/plan.hpp"

namespace chorale::tools {

/// Returns the text of the MSCCL algorithm of a plan. The import reads it back and proves it first.
/// \throws Failure plan_wrong if MSCCL cannot express the plan, or if the result is not right; the findings
/// are
///   reported
std::string msccl_text(const Plan&);

/// Writes the trace of rank R to PREFIX.R.et, for all ranks.
/// \throws Failure command_wrong if a file cannot be written
void write_chakra_files(const MessageGraph&, const std::string& prefix);

}  // namespace chorale::tools
