/// \file
/// Making a World out of an MPI communicator. Include only where MPI is there.
#pragma once

#include <mpi.h>

#include "chorale/world.hpp"

namespace chorale {

/// Collective over `communicator`, whose processes must be on one host. MPI is used only inside this call.
/// \throws RunError mismatch, naming the hosts, if there are several; otherwise as World::join()
World world_from_mpi(MPI_Comm communicator, JoinOptions options = {});

}  // namespace chorale
