/// \file
/// make_plan() makes the plan of a shipped algorithm when there is no plan file for your number of ranks.
#pragma once

#include <string>

#include "chorale/dsl.hpp"

namespace chorale {

/// Returns the plan of a shipped algorithm, or of another program of this process, for `ranks` ranks. It
/// builds, compiles and proves the plan, as `chorale compile NAME --set ranks=N --certify` does. That takes
/// milliseconds for eight ranks. All ranks that call it with the same arguments get the same plan.
///
///   const Plan plan = make_plan("allreduce_all_pairs", world.ranks(), {{"instances", "16"}});
///
/// \param name      the name of a program or of a shipped plan, see shipped_name.hpp. For example,
///   "allreduce_two_shot_ordered_b16" adds up in the order of the ranks and has 16 thread blocks
/// \param settings  further parameters of the program, without "ranks"
/// \throws std::invalid_argument if there is no such program, if it does not take these parameters, or if the
///   plan has findings, which the message contains
Plan make_plan(const std::string& name, int ranks, const dsl::Parameters::Settings& settings = {});

}  // namespace chorale
