#pragma once
/// \file
/// lint() warns about schedules that are correct but probably slower than their authors want.

#include <string>
#include <string_view>
#include <vector>

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {

inline constexpr std::string_view warning_names[] = {"overlap"};

/// Looks for [overlap] in a schedule without findings of check(), for each of Schedule::ranks. Stops after
/// the first number of ranks with warnings.
/// \param allow  the warning_names to skip; other names are ignored here
Diagnostics lint(const Schedule&, const Values& params = {}, Mover automatic = Mover::ce_put,
                 const std::vector<std::string>& allow = {});

}  // namespace chorale::schedule
