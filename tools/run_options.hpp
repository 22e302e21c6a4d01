/// \file
/// `run` and `bench` share their options and their work.
#pragma once

#include "tools/command.hpp"

namespace chorale::tools {

/// Declares the options and returns the run. \param bench  what --bench is by default
Action declare_run(CLI::App&, bool bench);

}  // namespace chorale::tools
