#pragma once
/// \file
/// Warns about schedules that are right, but not what their authors want.

#include <string>
#include <string_view>
#include <vector>

#include "chorale/host/concrete.hpp"

namespace chorale::host {

inline constexpr std::string_view warning_names[] = {"overlap"};

/// Looks for [overlap] in a schedule in which check() finds nothing, for each of Schedule::ranks. Stops after
/// the first number of ranks with warnings.
/// \param allow  the warning_names that are not looked for; other names are ignored here
Diagnostics lint(const Schedule&, const Values& params = {}, Mover automatic = Mover::ce_put,
                 const std::vector<std::string>& allow = {});

/// Writes all of them as render() writes one, without a closing line.
std::string render_warnings(const Plan&, const Diagnostics&);

}  // namespace chorale::host
