/// \file
/// This measures a launch from its beginning to its end.
#pragma once

#include <cstdint>

#include "chorale/profile.hpp"
#include "launch_spans.hpp"

namespace chorale::profile_of {

struct WholeLaunch {
  SpanPlace last;  ///< the span that ended last; with Clocks::per_rank of the rank that took longest
  uint64_t start_ns = 0, ns = 0;
};

/// Finds when a launch began and ended.
/// \param spans  has at least one span
WholeLaunch whole_launch(const LaunchSpans& spans, uint32_t ranks, Clocks);

}  // namespace chorale::profile_of
