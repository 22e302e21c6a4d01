#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/config.hpp"

namespace chorale::nccl {

/// Returns the lines of the log about variables of NCCL that are set but not honoured.
std::vector<std::string> lines_about_environment();

/// Checks that no variable forbids what communicators of GPUs need.
/// \throws CallError that names the variable that does
void check_environment_of_gpus();

/// Returns whether NCCL_COMM_BLOCKING makes communicators block; nothing if it does not decide.
/// \throws CallError if its value is neither 0 nor 1
std::optional<bool> blocking_in_environment();

/// Limits the thread blocks of a communicator's calls, as the variables of NCCL and its configuration say.
/// The lowest of these limits and of the setting max_blocks holds.
/// \param max_ctas  maxCTAs of the configuration, which NCCL_MAX_CTAS replaces; 0: none
void limit_blocks(Config& config, uint32_t max_ctas);

}  // namespace chorale::nccl
