/// \file
/// What a benchmark was run on: numbers without it say nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/rank_gpus.hpp"

namespace chorale::tools {

/// Name and value, in the order in which they are printed.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// CPU, GPUs, driver, CUDA and the commit of this build.
/// \param commit  overrides what this was built from; may be empty
Facts machine_facts(const RankGpus&, const std::string& commit);

/// "8 x NVIDIA H200"; "none".
std::string gpu_words(const RankGpus&);

}  // namespace chorale::tools
