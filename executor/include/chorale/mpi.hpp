/// \file
/// world_from_mpi() makes a World from an MPI communicator. Include this header only if you build with MPI.
#pragma once

// These keep mpi.h from including the old C++ bindings, which do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "chorale/world.hpp"

namespace chorale {

/// Makes a World of the ranks of `communicator`; collective over that communicator. It uses MPI only inside
/// this call. If the processes are on several hosts, they join over TCP at the first address of rank 0's host
/// that other machines can use, on `options.port` or on any free port. If that address does not work in your
/// network, call World::join() with another address. The processes authenticate each other with a secret that
/// rank 0 makes and sends over MPI, instead of `options.secret`.
///
/// World::survivors() works only if the launcher keeps the other processes alive when one dies. Open MPI 4
/// ends all of them, unless you call mpirun with --enable-recovery.
/// \throws as World::join()
World world_from_mpi(MPI_Comm communicator, JoinOptions options = {});

}  // namespace chorale
