/// \file
/// Makes a World out of an MPI communicator. Include it only if you build with MPI.
#pragma once

// The old C++ bindings, which mpi.h would bring along, do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "chorale/world.hpp"

namespace chorale {

/// Makes a World of the ranks of `communicator`, over which it is collective. It uses MPI only inside this
/// call. If the processes are on several hosts they meet over TCP, at the first address of rank 0's host that
/// other machines can use, on `options.port` or any free one. If others cannot reach that address,
/// World::join() takes another. The processes authenticate each other with a secret that rank 0 makes and
/// sends over MPI, instead of `options.secret`.
///
/// World::survivors() works only if the launcher lets the others live when a process dies. Open MPI 4 ends
/// all of them, unless mpirun is called with --enable-recovery.
/// \throws as World::join()
World world_from_mpi(MPI_Comm communicator, JoinOptions options = {});

}  // namespace chorale
