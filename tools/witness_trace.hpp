/// \file
/// A counter-example as a trace that opens in Perfetto and chrome://tracing.
#pragma once

#include <string>

#include "chorale/witness.hpp"

namespace chorale::tools {

/// The JSON text: a process is a rank, a thread a thread block; times are positions, not durations.
std::string trace_of(const Witness&);

}  // namespace chorale::tools
