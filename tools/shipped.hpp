/// \file
/// Finds the shipped host schedules by name.
#pragma once

#include <string>
#include <vector>

namespace chorale::tools {

/// Returns the names of the shipped host schedules, sorted; none if there are no plans.
std::vector<std::string> shipped_schedules();

/// Returns the file of the schedule of that name; "" if none is shipped.
std::string shipped_schedule(const std::string& name);

}  // namespace chorale::tools
