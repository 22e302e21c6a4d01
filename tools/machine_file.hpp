/// \file
/// Reads the machine's file that --machine names.
#pragma once

#include <string>

#include "chorale/machine.hpp"

namespace chorale::tools {

/// Reads a machine's file.
/// \param file  the file; empty: the NVIDIA H200's, beside the shipped plans
/// \throws Failure command_wrong
Machine machine_of(const std::string& file);

}  // namespace chorale::tools
