/// \file
/// Makes plans from algorithms of other systems: today from the XML files of MSCCL.
#pragma once

#include <string>

#include "tools/programs.hpp"

namespace chorale::tools {

/// Returns true if the name is that of an algorithm, and not of a plan file.
bool names_algorithm(const std::string& what);

/// Compiles an algorithm's plan, or returns its findings. "-" is standard input.
/// \throws Failure command_wrong if it cannot be read, or if the proofs to leave out are needed
Built build_algorithm(const std::string& path, const Aim& = {});

}  // namespace chorale::tools
