#pragma once
#include "chorale/host/concrete.hpp"

namespace chorale::host {

/// Gives every send its receive: the k-th of a rank to a peer with a tag meets the k-th there from this rank.
void match(Concrete&, const Schedule&, Diagnostics&);

}  // namespace chorale::host
