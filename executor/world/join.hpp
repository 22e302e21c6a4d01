/// \file
/// The processes of one host join a world through shared memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/system/shared_memory.hpp"

namespace chorale::world {

/// Joins the job called `name` and returns its Control when all ranks of this host have joined; collective
/// over these ranks. After that the name is free again. Ranks of other hosts count as joined from the
/// beginning.
/// \param hosts    the host of each rank
/// \param timeout  the limit of the wait; 0: no limit
/// \param used_once  no other job has or had this name
/// \throws RunError as World::join()
system::Mapping join_under(const std::string& name, int rank, const std::vector<uint32_t>& hosts,
                           std::chrono::nanoseconds timeout, bool used_once);

}  // namespace chorale::world
