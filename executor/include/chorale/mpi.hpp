/// \file
/// Making a World out of an MPI communicator. Include only where MPI is there.
#pragma once

// The old C++ bindings, which mpi.h would bring along, do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "chorale/world.hpp"

namespace chorale {

/// Collective over `communicator`, whose processes must be on one host. MPI is used only inside this call.
///
/// For World::survivors() the launcher has to let the others live when a process dies: Open MPI 4 ends all of
/// them, unless mpirun is called with --enable-recovery.
/// \throws RunError mismatch, naming the hosts, if there are several; otherwise as World::join()
World world_from_mpi(MPI_Comm communicator, JoinOptions options = {});

}  // namespace chorale
