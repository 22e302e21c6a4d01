/// \file
/// From the beginning of a launch to its end.
#pragma once

#include <cstdint>

#include "chorale/profile.hpp"
#include "launch_spans.hpp"

namespace chorale::profile_of {

struct WholeLaunch {
  SpanPlace last;  ///< the span that ended last; with Clocks::per_rank of the rank that took longest
  uint64_t start_ns = 0, ns = 0;
};

/// \param spans  one at least
WholeLaunch whole_launch(const LaunchSpans& spans, uint32_t ranks, Clocks);

}  // namespace chorale::profile_of
