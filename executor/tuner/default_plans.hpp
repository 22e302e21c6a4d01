/// \file
/// default_plans() chooses plans when no table has an entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/tuned_plans.hpp"

namespace chorale {

/// Returns the names of plans for a message, with the probably fastest plan first. Not all of them are
/// shipped for every number of ranks. The last one is the name of a program, which accepts any number of
/// ranks. All accept every message size.
/// \param bytes  the bytes of the input, or for an all-gather of the output, as in tables
/// \throws UsageError for an unknown collective
std::vector<std::string> default_plans(const TunedFor& machine, const std::string& collective,
                                       uint64_t bytes);

}  // namespace chorale
