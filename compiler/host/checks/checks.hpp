#pragma once
/// \file
/// The checks of host schedules. Each takes for granted what those before it establish.
///
/// They get the unrolled schedule, and the same behind expand_movers().

#include "chorale/host/concrete.hpp"

namespace chorale::host {

#define CHORALE_HOST_CHECK(name, summary) \
  void check_##name(const Schedule&, const Concrete& made, const Concrete& expanded, Diagnostics&);
#define CHORALE_HOST_LINT CHORALE_HOST_CHECK
#include "chorale/host/checks.def"

}  // namespace chorale::host
