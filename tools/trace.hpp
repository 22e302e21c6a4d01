/// \file
/// Traces of launches, for Perfetto and chrome://tracing.
#pragma once

#include <string>
#include <vector>

#include "chorale/executor.hpp"

namespace chorale::tools {

/// What --trace FILE asks of the executor; "": nothing.
/// \throws Failure if the file could not be written, before anything runs
void trace_to(Config& config, const std::string& path);

/// What --trace FILE asks of the command line: a file that can be written; "": nothing.
/// \throws Failure if it could not be, before anything runs
void need_trace_file(const std::string& path);

/// Writes spans of one clock, in any order, as below.
void write_trace(const std::vector<TraceSpan>& spans, uint32_t ranks, const std::string& path);

/// Collective: writes what all ranks' executors, made with `config`, have traced to `path`, by rank 0. A rank
/// is a process of the trace, a thread block a thread; each span carries its launch and the author's line.
/// One event a line. On the CPU times are from the first span of all; clocks of different GPUs differ, so
/// there they are from the first span of each rank.
/// \throws RunError, on all ranks, if the file cannot be written or nothing was traced
void write_trace(World& world, const Executor& executor, const Config& config, const std::string& path);

}  // namespace chorale::tools
