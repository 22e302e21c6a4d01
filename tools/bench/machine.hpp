/// \file
/// Describes the machine of a benchmark, because numbers mean nothing without it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/rank_gpus.hpp"

namespace chorale::tools {

/// Holds names and values, in the order in which they are printed.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Returns the CPU, GPUs, driver, CUDA and the commit of this build.
/// \param commit  overrides the commit of the build; may be empty
Facts machine_facts(const RankGpus&, const std::string& commit);

/// Returns "8 x NVIDIA H200" or "none".
std::string gpu_words(const RankGpus&);

}  // namespace chorale::tools
