/// \file
/// What the name of a shipped plan says of how it is made.
#pragma once

#include <string>

#include "chorale/dsl.hpp"

namespace chorale {

struct ShippedName {
  std::string program;
  dsl::Parameters::Settings settings;  ///< with ranks
};

/// PROGRAM[_ordered][_bBLOCKS]: in the order of the ranks, and of so many thread blocks.
ShippedName shipped_name(const std::string& name, int ranks);

}  // namespace chorale
