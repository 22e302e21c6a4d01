/// \file
/// Finds the plans of thread blocks that a host schedule launches: from the command line, or among the
/// shipped plans.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/schedule/concrete.hpp"

namespace chorale::tools {

using BlockPlans = std::map<std::string, Plan, std::less<>>;

/// Says what launched_plans() does about a launch that has no plan.
enum class MissingPlans { refuse, leave_out };

/// Returns a plan for each name that the schedule launches. It is the plan that `given` names ("NAME=PLAN"),
/// else the shipped plan of that name for this number of ranks.
/// \param allow  as in plan_for()
/// \throws Failure for names that are not launched, and for launches whose plan is missing or has other sizes
BlockPlans launched_plans(const Plan& schedule, const schedule::Concrete& made,
                          const std::vector<std::string>& given, const std::vector<std::string>& allow = {},
                          MissingPlans missing = MissingPlans::refuse);

}  // namespace chorale::tools
