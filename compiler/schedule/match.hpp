#pragma once
#include "chorale/host/concrete.hpp"

namespace chorale::host {

/// Gives every send its receive. The k-th send of a rank to a peer with a tag meets the k-th receive there
/// from this rank with that tag.
void match(Concrete&, const Schedule&, Diagnostics&);

}  // namespace chorale::host
