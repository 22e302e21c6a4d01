/// \file
/// The name of a shipped plan says how the plan is made.
#pragma once

#include <string>

#include "chorale/dsl.hpp"

namespace chorale {

/// Holds the parts of a shipped plan's name.
struct ShippedName {
  std::string program;                 ///< the program to build
  dsl::Parameters::Settings settings;  ///< includes "ranks"
};

/// Reads PROGRAM[_ordered][_bBLOCKS]. "_ordered" means that the plan adds up in the order of the ranks, and
/// BLOCKS is the number of thread blocks, 1 to 9999. If there is no such PROGRAM, or if a program has the
/// whole name, `program` is the whole name and `settings` has only "ranks".
ShippedName shipped_name(const std::string& name, int ranks);

}  // namespace chorale
