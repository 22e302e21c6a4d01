/// \file
/// Shipped algorithms for the number of ranks that there are, where no file has a plan for it.
#pragma once

#include <string>

#include "chorale/dsl.hpp"

namespace chorale {

/// The plan of a shipped algorithm, or of another program of this process, for `ranks` ranks: built, compiled
/// and proved here, in milliseconds for eight ranks, as `chorale compile NAME --set ranks=N --certify` does
/// it. All ranks that make it with the same arguments have the same plan.
///
///   const Plan plan = make_plan("allreduce_all_pairs", world.ranks(), {{"instances", "16"}});
///
/// \param name      of a program, or as shipped plans are called: "allreduce_two_shot_ordered_b16" adds up in
///                  the order of the ranks, and has 16 thread blocks
/// \param settings  further parameters of the program, without "ranks"
/// \throws std::invalid_argument if there is no such program, if it does not take these parameters, or with
///         what is wrong with the plan
Plan make_plan(const std::string& name, int ranks, const dsl::Parameters::Settings& settings = {});

}  // namespace chorale
