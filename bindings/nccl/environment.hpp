#pragma once

#include <optional>
#include <string>
#include <vector>

namespace chorale::nccl {

/// Returns the lines of the log about variables of NCCL that are set but not honoured.
std::vector<std::string> lines_about_environment();

/// Checks that no variable forbids what communicators of GPUs need.
/// \throws CallError that names the variable that does
void check_environment_of_gpus();

/// Returns whether NCCL_COMM_BLOCKING makes communicators block; nothing if it does not decide.
/// \throws CallError if its value is neither 0 nor 1
std::optional<bool> blocking_in_environment();

}  // namespace chorale::nccl
