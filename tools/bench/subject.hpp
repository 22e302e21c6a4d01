/// \file
/// Makes a benchmark's subject from a plan.
#pragma once

#include "tools/bench/measure.hpp"
#include "tools/plans.hpp"

namespace chorale::tools {

/// Returns the subject of a plan at the request's sizes. The plan must outlive it. It finds the errors that
/// are known before anything runs: the subject refuses sizes that the plan does not take.
Subject subject_of(const NamedPlan&, const BenchRequest&);

}  // namespace chorale::tools
