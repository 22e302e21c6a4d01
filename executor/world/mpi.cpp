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

#include "executor/bootstrap/address.hpp"
#include "executor/bootstrap/greeting.hpp"
#include "executor/bootstrap/hello.hpp"

namespace chorale {
namespace {

/// Returns the address as text if other hosts may be able to reach this host there; else "".
std::string reachable_at(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& of = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&of)) ::inet_ntop(AF_INET6, &of, text, sizeof text);
  }
  return text;
}

/// Returns the first address that other machines can use. It returns an IPv6 address only if there is no IPv4
/// address.
std::string own_address() {
  std::string found[2];
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "127.0.0.1";
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || (one->ifa_flags & (IFF_UP | IFF_LOOPBACK)) != IFF_UP) continue;
    std::string& first = found[one->ifa_addr->sa_family == AF_INET6];
    if (first.empty()) first = reachable_at(one->ifa_addr);
  }
  ::freeifaddrs(all);
  for (const std::string& address : found) {
    if (!address.empty()) return address;
  }
  return "127.0.0.1";
}

/// Returns a port on which no process listens now.
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

/// Makes a secret for this world; collective. Users need not set one, because MPI already connects the ranks.
std::string common_secret(int rank, MPI_Comm communicator) {
  bootstrap::Challenge random{};
  if (rank == 0) random = bootstrap::fresh_challenge();
  MPI_Bcast(random.data(), int(random.size()), MPI_BYTE, 0, communicator);
  std::string text;
  for (const unsigned char byte : random) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

World world_from_mpi(MPI_Comm communicator, JoinOptions options) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);

  // A host name alone cannot tell which ranks share memory. Two machines may have the same name, and on one
  // machine containers without common memory may have the same name.
  const bootstrap::Host here = bootstrap::hello_of(rank, ranks, options.host).host;
  const std::string place = fmt::format("{} {} {} {}", here.boot, here.shared, here.user, here.label);
  constexpr int host_bytes = 512;
  std::vector<char> hosts(size_t(ranks) * host_bytes);
  char mine[host_bytes] = {};
  std::memcpy(mine, place.data(), std::min(place.size(), sizeof mine - 1));
  MPI_Allgather(mine, host_bytes, MPI_CHAR, hosts.data(), host_bytes, MPI_CHAR, communicator);
  std::set<std::string> places;
  for (int peer = 0; peer < ranks; ++peer) places.insert(&hosts[size_t(peer) * host_bytes]);
  if (places.size() > 1) {
    char address[128] = {};
    if (rank == 0) {
      const uint16_t port = options.port != 0 ? options.port : free_port();
      const std::string text = bootstrap::Address{own_address(), port}.text();
      std::memcpy(address, text.data(), std::min(text.size(), sizeof address - 1));
    }
    MPI_Bcast(address, sizeof address, MPI_CHAR, 0, communicator);
    options.secret = common_secret(rank, communicator);
    return World::join(address, rank, ranks, options);
  }

  options.host.clear();
  // The name is random, so that no other job on this host has the same one.
  uint64_t name[2] = {};
  if (rank == 0) {
    std::random_device random;
    for (uint64_t& word : name) word = uint64_t(random()) << 32 | random();
  }
  MPI_Bcast(name, sizeof name, MPI_BYTE, 0, communicator);
  return World::join(fmt::format("shm://mpi-{:016x}{:016x}", name[0], name[1]), rank, ranks, options);
}

}  // namespace chorale
