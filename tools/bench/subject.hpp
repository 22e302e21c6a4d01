/// \file
/// What a plan is to a benchmark.
#pragma once

#include "tools/bench/measure.hpp"
#include "tools/bench/plans.hpp"

namespace chorale::tools {

/// The plan, which outlives it, at the request's sizes. What can be said before anything runs is said here,
/// once: sizes that it does not take are refused.
Subject subject_of(const NamedPlan&, const BenchRequest&);

}  // namespace chorale::tools
