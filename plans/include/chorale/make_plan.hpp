/// \file
/// A shipped algorithm may have no plan file for your number of ranks. make_plan() makes the plan for it.
#pragma once

#include <string>

#include "chorale/dsl.hpp"

namespace chorale {

/// Returns the plan of a shipped algorithm, or of another program of this process, for `ranks` ranks. It
/// builds, compiles and proves the plan, in milliseconds for eight ranks, like `chorale compile NAME --set
/// ranks=N --certify`. All ranks that make it with the same arguments get the same plan.
///
///   const Plan plan = make_plan("allreduce_all_pairs", world.ranks(), {{"instances", "16"}});
///
/// \param name      name of a program or of a shipped plan. For example, "allreduce_two_shot_ordered_b16"
/// adds
///   up in the order of the ranks and has 16 thread blocks
/// \param settings  further parameters of the program, without "ranks"
/// \throws std::invalid_argument if there is no such program, if it does not take these parameters, or if the
///   plan has findings, which the message contains
Plan make_plan(const std::string& name, int ranks, const dsl::Parameters::Settings& settings = {});

}  // namespace chorale
