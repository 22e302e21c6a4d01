/// \file
/// Tells from the name of a shipped plan how it is made.
#pragma once

#include <string>

#include "chorale/dsl.hpp"

namespace chorale {

struct ShippedName {
  std::string program;
  dsl::Parameters::Settings settings;  ///< "ranks" among them
};

/// Reads PROGRAM[_ordered][_bBLOCKS]: "_ordered" adds up in the order of the ranks, and BLOCKS is the number
/// of thread blocks.
ShippedName shipped_name(const std::string& name, int ranks);

}  // namespace chorale
