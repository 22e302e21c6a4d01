#pragma once
/// \file
/// Schedules that are right, but not what their authors want: warnings.

#include <string>
#include <string_view>
#include <vector>

#include "chorale/host/concrete.hpp"

namespace chorale::host {

inline constexpr std::string_view warning_names[] = {"overlap"};

/// [overlap] of a schedule in which check() finds nothing, for each of Schedule::ranks; the first number of
/// ranks with warnings ends it.
/// \param allow  of warning_names, what is not looked for; other names are somebody else's
Diagnostics lint(const Schedule&, const Values& params = {}, Mover automatic = Mover::ce_put,
                 const std::vector<std::string>& allow = {});

/// All of them as render() shows one, without a closing line.
std::string render_warnings(const Plan&, const Diagnostics&);

}  // namespace chorale::host
