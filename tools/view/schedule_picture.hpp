/// \file
/// Makes the picture of a host schedule, unrolled for a number of ranks.
#pragma once

#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/schedule/concrete.hpp"
#include "tools/findings.hpp"
#include "tools/view/picture.hpp"
#include "tools/view/schedule_times.hpp"

namespace chorale::tools {

/// Makes the picture. A row is a stream of a rank.
/// \param made  the schedule of `plan`, after expand_movers()
Picture picture_of_schedule(const Plan& plan, const schedule::Concrete& made, const std::string& file,
                            const std::vector<Explained>& findings, const SchedulePrediction&);

}  // namespace chorale::tools
