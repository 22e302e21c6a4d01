/// \file
/// How processes of one host find each other.
#pragma once

#include <chrono>
#include <string>

#include "shared_memory.hpp"

namespace chorale::world {

/// Collective: the Control of the job called `name`, joined by all its ranks; the name is free again.
/// \param timeout  0: none
/// \throws RunError  see World::join
Mapping meet_under(const std::string& name, int rank, int ranks, std::chrono::nanoseconds timeout,
                   const std::string& host = {});

}  // namespace chorale::world
