/// \file
/// Making a World out of an MPI communicator. Include only where MPI is there.
#pragma once

// The old C++ bindings, which mpi.h would bring along, do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "chorale/world.hpp"

namespace chorale {

/// Collective over `communicator`. MPI is used only inside this call. Where its processes are on several
/// hosts they meet over TCP, at the first address of rank 0's host that is not of that machine alone, on
/// `options.port` or any free one; where others do not reach that, World::join() takes another. They
/// authenticate each other with a secret that rank 0 makes and sends over MPI, instead of `options.secret`.
///
/// For World::survivors() the launcher has to let the others live when a process dies: Open MPI 4 ends all of
/// them, unless mpirun is called with --enable-recovery.
/// \throws as World::join()
World world_from_mpi(MPI_Comm communicator, JoinOptions options = {});

}  // namespace chorale
