/// \file
/// Makes plans from algorithms of other systems. Today it reads the XML files of MSCCL.
#pragma once

#include <string>

#include "tools/programs.hpp"

namespace chorale::tools {

/// Returns true if the name is an algorithm's and not a plan file's.
bool names_algorithm(const std::string& what);

/// Compiles an algorithm's plan, or returns its findings. "-" is standard input.
/// \throws Failure command_wrong if it cannot be read, or if `aim` leaves out a proof that is required
Built build_algorithm(const std::string& path, const Aim& = {});

}  // namespace chorale::tools
