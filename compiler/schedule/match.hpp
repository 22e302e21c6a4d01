#pragma once
#include "chorale/host/concrete.hpp"

namespace chorale::host {

/// Pairs every send with its receive. The k-th send from one rank to another with a tag matches the k-th
/// receive there from this rank with that tag.
void match(Concrete&, const Schedule&, Diagnostics&);

}  // namespace chorale::host
