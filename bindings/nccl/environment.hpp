#pragma once

#include <string>
#include <vector>

namespace chorale::nccl {

/// Returns the lines of the log about variables of NCCL that are set but not honoured.
std::vector<std::string> lines_about_environment();

}  // namespace chorale::nccl
