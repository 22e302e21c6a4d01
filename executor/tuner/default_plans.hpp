/// \file
/// These plans run when no table has an entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/tuned_plans.hpp"

namespace chorale {

/// Returns the names of plans for a message, the one that is likely to be the fastest first. Not all are
/// shipped for every number of ranks. The last one is the name of a program, which takes any number. All
/// take every size.
/// \param bytes  as in tables: of the input, of an all-gather of the output
/// \throws UsageError for a collective of another name
std::vector<std::string> default_plans(const TunedFor& machine, const std::string& collective,
                                       uint64_t bytes);

}  // namespace chorale
