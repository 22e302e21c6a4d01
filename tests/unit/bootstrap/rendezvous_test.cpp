#include "rendezvous.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "../world/processes.hpp"
#include "by_hand.hpp"
#include "chorale/world.hpp"
#include "executor/fibers/sanitizers.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using bootstrap::Hello;
using bootstrap::hello_of;
using bootstrap::parse_address;

std::string join_and_sum(const std::string& address, int rank, int ranks) {
  World world = World::join(address, rank, ranks);
  const auto all = world.allgather(std::vector<std::byte>(size_t(rank + 1)));
  for (int peer = 0; peer < ranks; ++peer) {
    if (all[peer].size() != size_t(peer + 1)) return "wrong";
  }
  return "good";
}

TEST_F(Rendezvous, RanksMeetInAnyOrder) {
  for (const int last : {0, 3}) {
    Processes ranks(0, {});
    const auto body = [&](int rank) {
      // This is long enough that the others have been refused or accepted before. The length does not change
      // the result.
      if (rank == last) std::this_thread::sleep_for(100ms);
      return join_and_sum(address, rank, 4);
    };
    for (int rank = 0; rank < 4; ++rank) ranks.spawn(rank, body);
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(ranks.said(rank), "good");
  }
}

TEST_F(Rendezvous, TheAddressIsFreeAgainAtOnce) {
  Processes ranks(3, [&](int rank) -> std::string {
    for (int times = 0; times < 20; ++times) {
      if (const std::string said = join_and_sum(address, rank, 3); said != "good") return said;
    }
    return "good";
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

TEST_F(Rendezvous, OneRankMeetsItself) { EXPECT_EQ(join_and_sum(address, 0, 1), "good"); }

TEST_F(Rendezvous, TheLongestTimeoutIsNotOverAtOnce) {
  Processes ranks(2, [&](int rank) -> std::string {
    World world = World::join(address, rank, 2, {.timeout = std::chrono::nanoseconds::max()});
    world.barrier();
    return "good";
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

TEST_F(Rendezvous, Ipv6) {
  const int probe = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool there = probe >= 0 && bind(probe, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0;
  if (probe >= 0) close(probe);
  if (!there) GTEST_SKIP() << "this machine has no IPv6";
  const std::string literal = "tcp://[::1]:" + std::to_string(port);
  Processes ranks(2, [&](int rank) { return join_and_sum(literal, rank, 2); });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

/// Returns whether this machine knows the name, because a minimal machine has no /etc/hosts.
bool is_known(const char* name) {
  addrinfo* found = nullptr;
  if (getaddrinfo(name, nullptr, nullptr, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

TEST_F(Rendezvous, LocalhostByName) {
  if (!is_known("localhost")) GTEST_SKIP() << "this machine does not know the name 'localhost' (/etc/hosts)";
  Processes ranks(2,
                  [&](int rank) { return join_and_sum("tcp://localhost:" + std::to_string(port), rank, 2); });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

/// Returns whether this machine's own name resolves only to itself.
bool keeps_to_itself(const char* name) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(name, nullptr, &wanted, &found) != 0) return false;
  bool all = true;
  for (const addrinfo* one = found; one; one = one->ai_next) {
    const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ai_addr);
    all = all && one->ai_family == AF_INET && ntohl(address->sin_addr.s_addr) >> 24 == 127;
  }
  freeaddrinfo(found);
  return all;
}

/// Many machines are like this, while others resolve the name to an address that all of them reach.
TEST_F(Rendezvous, ByANameThatLeadsBackToTheMachineThatHasIt) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  if (!keeps_to_itself(name)) GTEST_SKIP() << "the name of this machine leads to others, too";
  // This is an address of this machine that the name does not have.
  const std::string other = "tcp://127.77.0.1:" + std::to_string(port);
  Processes ranks(2, [&](int rank) {
    return join_and_sum(rank == 0 ? "tcp://" + std::string(name) + ":" + std::to_string(port) : other, rank,
                        2);
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

/// An address of this machine alone is not reachable from elsewhere.
TEST_F(Rendezvous, LocalhostIsHeardNowhereElse) {
  for (const char* const host : {"localhost", "127.0.0.1"}) {
    if (!is_known(host)) continue;
    Processes ranks(1, [&](int) {
      return World::join("tcp://" + std::string(host) + ":" + std::to_string(port), 0, 2, {.timeout = 2s}),
             "";
    });
    close(connected_socket(port));  // when this succeeds, it listens
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, "127.77.0.1", &address.sin_addr);
    EXPECT_NE(connect(file, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << host;
    close(file);
  }
}

// --- ranks that do not fit: every rank gets the error ---

TEST_F(Rendezvous, TwoProcessesWithOneRank) {
  // Rank 2 never comes, so the ranks cannot have connected before the second rank 1 came.
  Processes ranks(4, [&](int which) { return join(hello_of(which == 2 ? 1 : which, 4)); });
  for (int which = 0; which < 4; ++which) {
    const std::string said = ranks.said(which);
    EXPECT_TRUE(has(said, "mismatch: two processes are rank 1 of '" + address + "': pid ")) << said;
  }
}

TEST_F(Rendezvous, TwoProcessesWithRankZero) {
  Processes ranks(3, [&](int which) { return join(hello_of(which == 2 ? 1 : 0, 3)); });
  for (int which = 0; which < 3; ++which) {
    const std::string said = ranks.said(which);
    EXPECT_TRUE(has(said, "mismatch: two processes are rank 0 of '" + address + "'")) << said;
  }
}

TEST_F(Rendezvous, DifferentNumbersOfRanks) {
  Processes ranks(3, [&](int rank) { return join(hello_of(rank, rank == 1 ? 4 : 3)); });
  for (int rank = 0; rank < 3; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "mismatch: rank 1 (pid ") &&
                has(said, "says that '" + address + "' has 4 ranks, but rank 0 (pid ") &&
                has(said, ") says 3"))
        << said;
  }
}

TEST_F(Rendezvous, AnotherVersion) {
  Processes ranks(3, [&](int rank) {
    Hello mine = hello_of(rank, 3);
    if (rank == 2) mine.version = "0.0.7";
    return join(mine);
  });
  for (int rank = 0; rank < 3; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "mismatch: a rank of '" + address + "' is Chorale 0.0.7, but rank 0 (pid "))
        << said;
  }
}

/// The lowest rank of each host has a connection, over which nothing was sent.
TEST_F(Rendezvous, SeveralHosts) {
  Processes ranks(6, [&](int rank) -> std::string {
    Hello mine = hello_of(rank, 6);
    mine.host.name = "node" + std::to_string(std::vector{7, 7, 8, 9, 8, 9}[size_t(rank)]);
    mine.host.boot = mine.host.name;
    const bootstrap::Rendezvous met = bootstrap::rendezvous(parse_address(address), mine, 60s);
    const bootstrap::Membership& membership = met.membership;
    if (membership.hosts != std::vector<uint32_t>{0, 0, 1, 2, 1, 2}) return "other hosts";
    if (membership.host_names != std::vector<std::string>{"node7", "node8", "node9"}) return "other names";
    std::string said;
    for (size_t host = 0; host < met.links.size(); ++host) {
      const int link = met.links[host].get();
      if (link < 0) continue;
      if (rank == 0) {
        if (::write(link, membership.name.data(), membership.name.size()) < 0) return "cannot write";
      } else {
        pollfd polled{link, POLLIN, 0};
        poll(&polled, 1, 60000);
        if (read_some(link) != membership.name) return "no word from rank 0";
      }
      said += "host " + std::to_string(host) + ";";
    }
    return said;
  });
  const char* const wanted[] = {"host 1;host 2;", "", "host 0;", "host 0;", "", ""};
  for (int rank = 0; rank < 6; ++rank) EXPECT_EQ(ranks.said(rank), wanted[rank]) << rank;
}

/// A program that a rank starts may outlive it, and would hide the rank's death from the others.
TEST_F(Rendezvous, ConnectionsAreNotInheritedByPrograms) {
  Processes ranks(2, [&](int rank) -> std::string {
    const bootstrap::Rendezvous met =
        bootstrap::rendezvous(parse_address(address), hello_of(rank, 2, rank ? "b" : "a"), 60s);
    for (const system::Descriptor& link : met.links) {
      if (link && !(fcntl(link.get(), F_GETFD) & FD_CLOEXEC)) return "inherited";
    }
    return "not inherited";
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.said(rank), "not inherited");
}

TEST_F(Rendezvous, HostsOfOneMachineByName) {
  Processes ranks(3, [&](int rank) {
    return bootstrap::rendezvous(parse_address(address), hello_of(rank, 3, rank == 1 ? "b" : "a"), 60s)
        .membership.host_names.at(1);
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "b");
}

TEST_F(Rendezvous, ContainersAndUsersOfOneMachine) {
  Processes ranks(3, [&](int rank) {
    Hello mine = hello_of(rank, 3);
    mine.host.name = "node" + std::to_string(rank);
    mine.host.user = "1000";
    if (rank == 1) mine.host.shared = "another";
    if (rank == 2) mine.host.user = "7";
    return join(mine);
  });
  for (int rank = 0; rank < 3; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(
        has(said,
            "the ranks are on one machine but share no memory: node0 (rank 0, user 1000), node1 (rank 1, "
            "user 1000), node2 (rank 2, user 7); run them as one user in one container"))
        << said;
  }
}

TEST_F(Rendezvous, ForeignBytesOnThePort) {
  Processes ranks(3, [&](int rank) { return join(hello_of(rank, 4)); });
  const int file = connected_socket(port);
  write_text(file, "GET / HTTP/1.1\r\n");
  EXPECT_EQ(read_some(file), "");  // rank 0 closes the connection
  ranks.spawn(3, [&](int) { return join(hello_of(3, 4)); });
  const std::string name = ranks.said(0);
  EXPECT_TRUE(name.starts_with("tcp-")) << name;
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(ranks.said(rank), name);
  close(file);
}

/// The foreign bytes may come from a process that should have been a rank.
TEST_F(Rendezvous, ForeignBytesAreNamedIfARankDoesNotCome) {
  Processes ranks(1, [&](int rank) { return join(hello_of(rank, 2), 3s); });
  const int file = connected_socket(port);
  write_text(file, "SSH");  // shorter than a frame
  EXPECT_EQ(read_some(file), "");
  const std::string said = ranks.said(0);
  EXPECT_TRUE(has(said, "timed_out: rank 1 did not join '" + address + "' within 3 s") &&
              has(said, "; somebody at 127.0.0.1 failed to authenticate for '" + address +
                            "': it is not a rank of Chorale: it speaks SSH"))
      << said;
  close(file);
}

TEST_F(Rendezvous, ConnectionsThatSayNothingDoNotMatter) {
  Processes ranks(1, [&](int rank) { return join_and_sum(address, rank, 2); });
  const int silent = connected_socket(port), gone = connected_socket(port), half = connected_socket(port);
  close(gone);
  write_text(half, "chorale/0000");
  close(half);
  ranks.spawn(1, [&](int rank) { return join_and_sum(address, rank, 2); });
  EXPECT_EQ(ranks.said(0), "good");
  EXPECT_EQ(ranks.said(1), "good");
  close(silent);
}

// --- ranks that do not come, or leave ---

TEST_F(Rendezvous, AMissingRankIsNamed) {
  for (const int missing : {1, 2}) {
    Processes ranks(
        3, [&](int rank) -> std::string { return rank == missing ? "absent" : join(hello_of(rank, 3), 5s); });
    for (int rank = 0; rank < 3; ++rank) {
      const std::string said = ranks.said(rank);
      if (rank == missing) continue;
      EXPECT_TRUE(has(
          said, "timed_out: rank " + std::to_string(missing) + " did not join '" + address + "' within 5 s"))
          << said;
      EXPECT_TRUE(has(said, ": start all ranks with one address; if it only takes longer, ")) << said;
    }
  }
}

TEST_F(Rendezvous, AMissingRankZeroIsNamed) {
  Processes ranks(1, [&](int) { return join(hello_of(1, 2), 1s); });
  const std::string said = ranks.said(0);
  EXPECT_TRUE(has(
      said, "timed_out: rank 0 did not join '" + address + "' within 1 s, says rank 1: Connection refused"))
      << said;
}

TEST_F(Rendezvous, OneDeadlineEndsItForAll) {
  // The test acts as rank 2 of 4: it learns that only rank 3 is missing, and then gives up.
  Processes ranks(2, [&](int rank) { return join(hello_of(rank, 4)); });
  const int file = greeted_socket(port, 2, 4);
  write_text(file, frame('h', bootstrap::encode(hello_of(2, 4))));
  const std::string heard = read_until(file, "wrank 3");
  ASSERT_TRUE(has(heard, "wrank 3")) << heard;
  write_text(file, frame('g', "rank 3 did not join, says rank 2"));
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(ranks.said(rank), "timed_out: rank 3 did not join, says rank 2");
  close(file);
}

TEST_F(Rendezvous, ARankThatDiesIsNamed) {
  Processes ranks(2, [&](int rank) { return join(hello_of(rank, 4)); });
  const int file = greeted_socket(port, 2, 4);
  write_text(file, frame('h', bootstrap::encode(hello_of(2, 4))));
  const std::string heard = read_until(file, "wrank 3");
  ASSERT_TRUE(has(heard, "wrank 3")) << heard;
  close(file);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "peer_lost: rank 2 (pid ") &&
                has(said, ") died while '" + address + "' was being joined"))
        << said;
  }
}

/// The test acts as rank 1, and sends data that is for later.
TEST_F(Rendezvous, WhatComesTooEarlyDoesNotMatter) {
  Processes ranks(1, [&](int rank) { return join(hello_of(rank, 3)); });
  const int file = greeted_socket(port, 1, 3);
  write_text(file, frame('h', bootstrap::encode(hello_of(1, 3))) + frame('r', "") + frame('r', ""));
  const std::string heard = read_until(file, "wrank 2");
  EXPECT_TRUE(has(heard, "wrank 2")) << heard;
  ranks.spawn(2, [&](int rank) { return join(hello_of(rank, 3)); });
  const std::string name = ranks.said(0);
  EXPECT_TRUE(name.starts_with("tcp-")) << name;
  EXPECT_EQ(ranks.said(1), name);
  close(file);
}

TEST_F(Rendezvous, ADeadRankZeroIsNamed) {
  // The test acts as rank 0: it answers once, and is gone.
  const int file = bound_socket(port);
  ASSERT_EQ(listen(file, 8), 0);
  Processes ranks(1, [&](int) { return join(hello_of(1, 3)); });
  const int other = accept4(file, nullptr, nullptr, SOCK_CLOEXEC);
  bootstrap::ServersGreeting greeting({}, port);
  const std::string hello = read_until(other, "\n", greet(other, greeting));
  EXPECT_TRUE(has(hello, "chorale/")) << hello;
  write_text(other, frame('w', "rank 2"));
  close(other);
  const std::string said = ranks.said(0);
  EXPECT_TRUE(has(said, "peer_lost: rank 0 died while '" + address + "' was being joined")) << said;
  close(file);
}

/// It was needed to connect, and is not needed again.
TEST_F(Rendezvous, SurvivorsGoOnWithoutTheRankThatListened) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = World::join(address, rank, 3);
    world.barrier();
    if (rank == 0) ::kill(getpid(), SIGKILL);
    try {
      for (;;) world.barrier();
    } catch (const RunError&) {
      World next = world.survivors();
      next.barrier();
      return std::to_string(next.rank()) + " of " + std::to_string(next.ranks());
    }
  });
  EXPECT_EQ(ranks.said(1), "0 of 2");
  EXPECT_EQ(ranks.said(2), "1 of 2");
}

// --- the port ---

TEST_F(Rendezvous, APortInUseIsNamed) {
  const int file = bound_socket(port);
  ASSERT_EQ(listen(file, 8), 0);
  Processes ranks(1, [&](int) { return join(hello_of(0, 2)); });
  std::thread server([&] {
    const int other = accept4(file, nullptr, nullptr, SOCK_CLOEXEC);
    read_some(other);
    write_text(other, "HTTP/1.1 400 Bad Request\r\n");
    close(other);
  });
  const std::string said = ranks.said(0);
  EXPECT_TRUE(has(said, "resources: rank 0 cannot listen on '" + address + "': the port is in use")) << said;
  server.join();
  close(file);
}

TEST_F(Rendezvous, AnotherServiceOnThePortIsNamed) {
  const int file = bound_socket(port);
  ASSERT_EQ(listen(file, 8), 0);
  Processes ranks(1, [&](int) { return join(hello_of(1, 2)); });
  std::thread server([&] {
    const int other = accept4(file, nullptr, nullptr, SOCK_CLOEXEC);
    write_text(other, "SSH-2.0-OpenSSH\r\n");
    read_some(other);
    close(other);
  });
  const std::string said = ranks.said(0);
  EXPECT_TRUE(has(said, "mismatch: the program that listens on '" + address +
                            "' is not rank 0 of Chorale: it speaks SSH; choose another port"))
      << said;
  server.join();
  close(file);
}

/// The error comes at whatever point of the rendezvous the files run out.
TEST_F(Rendezvous, TooFewOpenFilesAreSaidToBe) {
#if defined(CHORALE_ASAN)
  GTEST_SKIP() << "the sanitizers open files to look whether memory is there";
#endif
  for (const int rank : {0, 1}) {
    std::string said;
    for (int room = 0; !has(said, "timed_out: rank "); ++room) {
      Processes process(1, [&](int) {
        const int next = ::open("/dev/null", O_RDONLY);
        close(next);
        rlimit some{};
        some.rlim_cur = some.rlim_max = rlim_t(next + room);
        setrlimit(RLIMIT_NOFILE, &some);
        return join(hello_of(rank, 2), 1s);
      });
      said = process.said(0);
      if (has(said, "timed_out: rank ") && !has(said, "Too many open files")) continue;
      ASSERT_TRUE(has(said, "resources: ") && has(said, "(ulimit -n)"))
          << rank << ", " << room << ": " << said;
    }
  }
}

TEST_F(Rendezvous, AnAddressOfAnotherMachineOrNone) {
  Processes ranks(0, {});
  // 192.0.2.0/24 is reserved for documentation, so no machine has it.
  ranks.spawn(0, [&](int) { return World::join("tcp://192.0.2.1:29500", 0, 2), ""; });
  ranks.spawn(
      0, [&](int) { return World::join("tcp://no-such-host.invalid:29500", 0, 2, {.timeout = 1s}), ""; });
  EXPECT_TRUE(has(ranks.said(0), "other: rank 0 cannot listen on 'tcp://192.0.2.1:29500': "));
  EXPECT_TRUE(has(ranks.said(1), "other: cannot resolve the host of 'tcp://no-such-host.invalid:29500': "));
}

TEST(RendezvousAddress, IsParsed) {
  EXPECT_EQ(parse_address("tcp://node7:29500").host, "node7");
  EXPECT_EQ(parse_address("tcp://node7:29500").port, 29500);
  EXPECT_EQ(parse_address("tcp://[fe80::1]:1").host, "fe80::1");
  EXPECT_EQ(parse_address("tcp://[fe80::1]:1").text(), "tcp://[fe80::1]:1");
  for (const char* text : {"tcp://", "tcp://a", "tcp://a:", "tcp://:1", "tcp://a:0", "tcp://a:65536",
                           "tcp://a:1x", "tcp://fe80::1:1", "tcp://[fe80::1]", "tcp://[fe80::1", "tcp://[]:1",
                           "tcp://a/b:1", "tcp://a:-1", "udp://a:1"}) {
    EXPECT_THROW(parse_address(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace chorale::test
