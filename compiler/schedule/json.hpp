#pragma once
/// \file
/// These functions read and write host schedules in plan files. There a schedule is the section "host" of the
/// key "chorale".

#include <string>

#include "chorale/schedule/schedule.hpp"
#include "compiler/json/fields.hpp"

namespace chorale::schedule {

/// Reads a schedule.
/// \throws PlanError
Schedule read_schedule(const json::Node&);

/// Appends the schedule as an object, one operation per line. `indent` is the indent of the line on which the
/// object begins.
void write_schedule(std::string& out, const Schedule&, const std::string& indent);

}  // namespace chorale::schedule
