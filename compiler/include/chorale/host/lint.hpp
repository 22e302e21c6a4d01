#pragma once
/// \file
/// Schedules that are right, but not what their authors want: warnings.

#include <string>

#include "chorale/host/concrete.hpp"

namespace chorale::host {

/// [overlap] of a schedule in which check() finds nothing, for each of Schedule::ranks; the first number of
/// ranks with warnings ends it.
Diagnostics lint(const Schedule&, const Values& params = {}, Mover automatic = Mover::ce_put);

/// All of them as render() shows one, without a closing line.
std::string render_warnings(const Plan&, const Diagnostics&);

}  // namespace chorale::host
