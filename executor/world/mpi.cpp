#include "chorale/mpi.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

namespace chorale {
namespace {

/// Where the hosts of all ranks may reach this one: its first address that is not of this machine alone.
std::string own_address() {
  std::string found = "127.0.0.1";
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & (IFF_UP | IFF_LOOPBACK)) != IFF_UP) continue;
    char text[INET_ADDRSTRLEN];
    const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (!::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) continue;
    found = text;
    break;
  }
  ::freeifaddrs(all);
  return found;
}

/// One that nothing listens on now.
uint16_t free_port() {
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  socklen_t length = sizeof here;
  const bool found = file >= 0 && ::bind(file, reinterpret_cast<sockaddr*>(&here), sizeof here) == 0 &&
                     ::getsockname(file, reinterpret_cast<sockaddr*>(&here), &length) == 0;
  if (file >= 0) ::close(file);
  return found ? ntohs(here.sin_port) : 29500;
}

}  // namespace

World world_from_mpi(MPI_Comm communicator, JoinOptions options) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);

  constexpr int host_bytes = 256;
  std::vector<char> hosts(size_t(ranks) * host_bytes);
  char mine[host_bytes] = {};
  if (options.host.empty()) {
    gethostname(mine, host_bytes - 1);
  } else {
    std::memcpy(mine, options.host.data(), std::min(options.host.size(), size_t(host_bytes - 1)));
  }
  MPI_Allgather(mine, host_bytes, MPI_CHAR, hosts.data(), host_bytes, MPI_CHAR, communicator);
  std::set<std::string> names;
  for (int peer = 0; peer < ranks; ++peer) names.insert(&hosts[size_t(peer) * host_bytes]);
  if (names.size() > 1) {
    char address[64] = {};
    if (rank == 0) {
      const uint16_t port = options.port != 0 ? options.port : free_port();
      const std::string text = fmt::format("tcp://{}:{}", own_address(), port);
      std::memcpy(address, text.data(), std::min(text.size(), sizeof address - 1));
    }
    MPI_Bcast(address, sizeof address, MPI_CHAR, 0, communicator);
    return World::join(address, rank, ranks, options);
  }

  options.host.clear();
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
