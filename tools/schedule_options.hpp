/// \file
/// Declares the options of commands for host schedules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/schedule/concrete.hpp"
#include "tools/command.hpp"

namespace chorale::tools {

struct ScheduleOptions {
  std::vector<std::string> param, plan;
  std::string mover;

  void declare(CLI::App&);
  bool given() const { return !param.empty() || !plan.empty() || !mover.empty(); }

  /// Reads the schedule's parameters.
  /// \throws Failure for parameters that the schedule does not have, and for values that are not numbers
  schedule::Values params(const Plan&) const;
  schedule::Mover automatic() const;  ///< the mover of transfers that do not name one
};

/// Returns `ranks`. If that is 0, returns the largest number of ranks that the schedule allows.
uint32_t schedule_ranks(const schedule::Schedule&, uint32_t ranks);

/// Unrolls the schedule for this number of ranks.
/// \throws Failure plan_wrong after it has reported the findings
schedule::Concrete unroll(const Plan&, uint32_t ranks, const schedule::Values& params,
                          schedule::Mover automatic);

/// Refuses a plan that is a host schedule.
/// \param what  the command, such as "chorale bench", which takes only plans of thread blocks
/// \throws Failure if the plan is a host schedule
void refuse_schedule(const Plan&, const std::string& what, const std::string& help = "");

}  // namespace chorale::tools
