/// \file
/// The name of a shipped plan says how the plan is made.
#pragma once

#include <string>

#include "chorale/dsl.hpp"

namespace chorale {

struct ShippedName {
  std::string program;
  dsl::Parameters::Settings settings;  ///< includes "ranks"
};

/// Reads PROGRAM[_ordered][_bBLOCKS]. "_ordered" means that the plan adds up in the order of the ranks, and
/// BLOCKS is the number of thread blocks.
ShippedName shipped_name(const std::string& name, int ranks);

}  // namespace chorale
