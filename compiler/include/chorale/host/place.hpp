#pragma once

#include "chorale/host/schedule.hpp"

namespace chorale::host {

/// Makes windows of the tensors that peers reach into: of what is received, for movers that write there, and
/// of what is sent, for those that read there. `automatic` counts as ce_put.
void place(Schedule&);

}  // namespace chorale::host
