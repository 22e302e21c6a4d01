/// \file
/// whole_launch() measures a launch from its beginning to its end.
#pragma once

#include <cstdint>

#include "chorale/profile.hpp"
#include "launch_spans.hpp"

namespace chorale::profile_of {

struct WholeLaunch {
  SpanPlace last;  ///< the span that ended last; with Clocks::per_rank, the last span of the slowest rank
  uint64_t start_ns = 0, ns = 0;
};

/// Finds the beginning and the end of a launch.
/// \param spans  the spans of the launch, at least one
WholeLaunch whole_launch(const LaunchSpans& spans, uint32_t ranks, Clocks);

}  // namespace chorale::profile_of
