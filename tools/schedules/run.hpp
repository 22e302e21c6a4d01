/// \file
/// Runs the host schedule of a plan on test data, and compares every output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/config.hpp"
#include "chorale/schedule.hpp"
#include "tools/runner.hpp"

namespace chorale::tools {

struct ScheduleRequest {
  uint32_t ranks = 0;
  host::Values params = {};
  std::vector<std::string> plans = {}, allow = {};  ///< of what it launches: see launched_plans()
  host::Mover mover = host::Mover::ce_put;
  bool processes = false;
  unsigned repeat = 3;
};

/// The one result is of all runs. \throws Failure for what can be said before anything runs
RunOutcome run_schedule(const Plan& plan, const ScheduleRequest& request, const Config& config);

}  // namespace chorale::tools
