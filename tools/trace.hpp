/// \file
/// Traces of launches, for Perfetto and chrome://tracing.
#pragma once

#include <string>

#include "chorale/executor.hpp"

namespace chorale::tools {

/// Collective: writes what all ranks' executors have traced to `path`, by rank 0. A rank is a process of the
/// trace, a thread block a thread; each span carries its launch and the author's line. Clocks of different
/// GPUs differ: times are from the first span of each rank. \throws RunError, on all ranks, if the file
/// cannot be written or nothing was traced
void write_trace(World& world, const Executor& executor, const std::string& path);

}  // namespace chorale::tools
