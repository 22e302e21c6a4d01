/// \file
/// Finds the plans of thread blocks that a host schedule launches, on the command line or among the shipped
/// ones.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "chorale/host/concrete.hpp"
#include "chorale/plan.hpp"

namespace chorale::tools {

using BlockPlans = std::map<std::string, Plan, std::less<>>;

/// Returns a plan for each name that the schedule launches: the one that `given` says ("NAME=PLAN"), else the
/// shipped plan of that name for as many ranks.
/// \param allow  as in plan_for()
/// \throws Failure for names that are not launched, and launches that have no plan, or one of other sizes
BlockPlans launched_plans(const Plan& schedule, const host::Concrete& made,
                          const std::vector<std::string>& given, const std::vector<std::string>& allow = {});

}  // namespace chorale::tools
