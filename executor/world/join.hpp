/// \file
/// Processes of one host find each other here.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "../system/shared_memory.hpp"

namespace chorale::world {

/// Collective of a host's ranks: returns the Control of the job called `name` when all of them have joined
/// it. The name is free again then. Ranks of other hosts count as joined from the beginning.
/// \param hosts    by rank
/// \param timeout  0: none
/// \param used_once  the name is this job's alone, and was never another's
/// \throws RunError  see World::join
Mapping join_under(const std::string& name, int rank, const std::vector<uint32_t>& hosts,
                   std::chrono::nanoseconds timeout, bool used_once);

}  // namespace chorale::world
