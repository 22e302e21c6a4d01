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
  schedule::Values params = {};
  std::vector<std::string> plans = {}, allow = {};  ///< the plans that it launches: see launched_plans()
  schedule::Mover mover = schedule::Mover::ce_put;
  bool processes = false;
  unsigned repeat = 3;
};

/// Runs the schedule `repeat` times and returns one result for all runs.
/// \throws Failure for errors that are found before anything runs
RunOutcome run_schedule(const Plan& plan, const ScheduleRequest& request, const Config& config);

}  // namespace chorale::tools
