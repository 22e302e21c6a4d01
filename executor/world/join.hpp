/// \file
/// How processes of one host find each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "shared_memory.hpp"

namespace chorale::world {

/// Collective of a host's ranks: the Control of the job called `name`, joined by all of them; the name is
/// free again. Ranks of other hosts have joined it from the beginning.
/// \param hosts    by rank
/// \param timeout  0: none
/// \param used_once  the name is this job's alone, and was never another's
/// \throws RunError  see World::join
Mapping meet_under(const std::string& name, int rank, const std::vector<uint32_t>& hosts,
                   std::chrono::nanoseconds timeout, bool used_once);

}  // namespace chorale::world
