/// \file
/// Writes a counter-example as a trace that opens in Perfetto and chrome://tracing.
#pragma once

#include <string>

#include "chorale/witness.hpp"

namespace chorale::tools {

/// Returns the JSON text. A process is a rank, and a thread is a thread block. Times are positions, not
/// durations.
std::string trace_of(const Witness&);

}  // namespace chorale::tools
