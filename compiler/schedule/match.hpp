#pragma once
#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {

/// Pairs every send with its receive. The k-th send from one rank to another with a tag matches the k-th
/// receive there from this rank with that tag.
void match(Concrete&, const Schedule&, Diagnostics&);

}  // namespace chorale::schedule
