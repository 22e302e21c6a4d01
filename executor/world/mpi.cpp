#include "chorale/mpi.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <random>
#include <set>
#include <vector>

namespace chorale {

World world_from_mpi(MPI_Comm communicator, JoinOptions options) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);

  constexpr int host_bytes = 256;
  std::vector<char> hosts(size_t(ranks) * host_bytes);
  char mine[host_bytes] = {};
  gethostname(mine, host_bytes - 1);
  MPI_Allgather(mine, host_bytes, MPI_CHAR, hosts.data(), host_bytes, MPI_CHAR, communicator);
  std::set<std::string> names;
  for (int peer = 0; peer < ranks; ++peer) names.insert(&hosts[size_t(peer) * host_bytes]);
  if (names.size() > 1) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    throw RunError(
        RunError::Reason::mismatch,
        fmt::format("the ranks are on {} hosts ({}); a world has one host for now", names.size(), list));
  }

  // Random, so that no other job of this host can have it.
  uint64_t name[2] = {};
  if (rank == 0) {
    std::random_device random;
    for (uint64_t& word : name) word = uint64_t(random()) << 32 | random();
  }
  MPI_Bcast(name, sizeof name, MPI_BYTE, 0, communicator);
  return World::join(fmt::format("shm://mpi-{:016x}{:016x}", name[0], name[1]), rank, ranks, options);
}

}  // namespace chorale
