/// \file
/// Plans from algorithms of others: today the XML files of MSCCL.
#pragma once

#include <string>

#include "tools/programs.hpp"

namespace chorale::tools {

/// True if the name is that of an algorithm, and not of a plan file.
bool names_algorithm(const std::string& what);

/// An algorithm's plan, compiled, or its findings. "-" is standard input.
/// \throws Failure command_wrong if it cannot be read, or if the proofs to leave out are needed
Built build_algorithm(const std::string& path, const Aim& = {});

}  // namespace chorale::tools
