/// \file
/// Finds the host schedules that are shipped, by name.
#pragma once

#include <string>
#include <vector>

namespace chorale::tools {

/// Returns their names, sorted; none if no plans are found.
std::vector<std::string> shipped_schedules();

/// Returns the file of the schedule of that name; "" if none is shipped.
std::string shipped_schedule(const std::string& name);

}  // namespace chorale::tools
