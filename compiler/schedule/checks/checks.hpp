#pragma once
/// \file
/// These are the checks of host schedules. Each relies on what the checks before it have established.
///
/// Each check gets the unrolled schedule, and the same schedule after expand_movers().

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {

#define CHORALE_HOST_CHECK(name, summary) \
  void check_##name(const Schedule&, const Concrete& made, const Concrete& expanded, Diagnostics&);
#define CHORALE_HOST_LINT CHORALE_HOST_CHECK
#include "chorale/schedule/checks.def"

}  // namespace chorale::schedule
