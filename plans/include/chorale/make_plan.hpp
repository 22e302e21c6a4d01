/// \file
/// Makes the plan of a shipped algorithm for a number of ranks for which no file has one.
#pragma once

#include <string>

#include "chorale/dsl.hpp"

namespace chorale {

/// Returns the plan of a shipped algorithm, or of another program of this process, for `ranks` ranks. It
/// builds, compiles and proves it here, in milliseconds for eight ranks, as `chorale compile NAME --set
/// ranks=N --certify` does it. All ranks that make it with the same arguments have the same plan.
///
///   const Plan plan = make_plan("allreduce_all_pairs", world.ranks(), {{"instances", "16"}});
///
/// \param name      that of a program, or of a shipped plan: "allreduce_two_shot_ordered_b16" adds up in the
///   order of the ranks, and has 16 thread blocks
/// \param settings  further parameters of the program, without "ranks"
/// \throws std::invalid_argument if there is no such program, if it does not take these parameters, or if
///   something is wrong with the plan, which it says
Plan make_plan(const std::string& name, int ranks, const dsl::Parameters::Settings& settings = {});

}  // namespace chorale
