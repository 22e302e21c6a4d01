// These tests check connections of proxies: callers that are not peers, peers that do not read, and memory
// that one rank lacks.

#include "executor/transport/connections.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

#include "executor/cpu/sanitizers.hpp"
#include "executor/world/group.hpp"
#include "support.hpp"
#include "tests/unit/scarce_memory.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale {
namespace {

using namespace test;
using namespace std::chrono_literals;

/// Connects a client that knows only the port.
transport::Socket stranger(uint16_t port, const std::string& says) {
  transport::Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(port);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  EXPECT_EQ(::send(socket.get(), says.data(), says.size(), MSG_NOSIGNAL), ssize_t(says.size()));
  return socket;
}

TEST(Connections, StrangersDoNotKeepPeersOut) {
  std::vector<World> worlds = World::local(3, {.timeout = 300s});
  transport::Listener listener;
  const transport::Invitation invitation = listener.invitation();
  const transport::Socket silent = stranger(invitation.port, ""),
                          short_of_words = stranger(invitation.port, "x"),
                          other = stranger(invitation.port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  { const transport::Socket gone = stranger(invitation.port, ""); }
  // A rank that knows the secret but does not come after the listener in rank order is a stranger, too.
  const transport::Socket before = transport::call(worlds[0], 1, invitation);
  transport::Socket peer;
  std::thread caller([&] {
    std::this_thread::sleep_for(50ms);
    peer = transport::call(worlds[2], 1, invitation);
  });
  const std::vector<transport::Socket> peers = listener.accept_peers(worlds[1]);
  caller.join();
  ASSERT_EQ(peers.size(), 3u);
  EXPECT_FALSE(peers[0]);
  EXPECT_FALSE(peers[1]);
  ASSERT_TRUE(peers[2]);
  char came = 0;
  EXPECT_EQ(::send(peer.get(), "y", 1, MSG_NOSIGNAL), 1);
  pollfd polled{peers[2].get(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 300000), 1);
  EXPECT_EQ(::recv(peers[2].get(), &came, 1, 0), 1);
  EXPECT_EQ(came, 'y');
}

TEST(Connections, SilentStrangersTakeFewDescriptors) {
  std::vector<World> worlds = World::local(2, {.timeout = 300s});
  transport::Listener listener;
  std::vector<transport::Socket> silent;
  for (int caller = 0; caller < 300; ++caller) silent.push_back(stranger(listener.invitation().port, ""));
  const transport::Socket peer = transport::call(worlds[1], 0, listener.invitation());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit scarce = before;
  scarce.rlim_cur = rlim_t(silent.back().get()) + 100;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &scarce), 0);
  std::vector<transport::Socket> peers;
  EXPECT_NO_THROW(peers = listener.accept_peers(worlds[0]));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_TRUE(peers[1]);
}

TEST(Connections, WaitsForPeersEnd) {
  {
    std::vector<World> worlds = World::local(3, {.timeout = 200ms});
    transport::Listener listener;
    const transport::Socket silent = stranger(listener.invitation().port, "");
    EXPECT_EQ(message_of_error<RunError>([&] { listener.accept_peers(worlds[0]); }),
              std::string("timed out: a proxy of rank 0 waited 0.2 s for a connection to ranks 1, 2; ") +
                  world::more_time);
  }
  std::vector<World> worlds = World::local(2, {.timeout = 0s});
  transport::Listener listener;
  std::thread aborter([&] {
    std::this_thread::sleep_for(50ms);
    worlds[1].abort("enough");
  });
  EXPECT_EQ(message_of_error<RunError>([&] { listener.accept_peers(worlds[0]); }),
            "aborted by rank 1: enough");
  aborter.join();
}

/// Ends before the proxy has sent the message.
struct SendAndLeave {
  EndpointTable table;
  Leg message;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(1, group.id);
    return with_link(e, [&](auto fabric) {
      return send_tiles<char, decltype(fabric)>(group, e, message, CopyProduce{}, deadline);
    });
  }
};

/// Rank 1 stops in the middle of a message, and continues when rank 0's launch has reached its deadline.
/// \param leaves  true if only the proxy still waits then
void expect_end_at_deadline(bool leaves) {
#if defined(CHORALE_TSAN)
  GTEST_SKIP() << "in a forked process the sanitizer takes fibers of earlier tests for racing with its own";
#endif
  const std::string address = fresh_address();
  const uint64_t n = uint64_t{32} << 20;  // more than the kernel keeps for a connection
  Processes all(2, [&](int rank) -> std::string {
    World world = World::join(address, rank, 2, {.timeout = 6s});
    const auto transport = port_rendezvous(world, rings(1, 1, n), ProxyKind::tcp);
    const pid_t self = getpid();
    const auto pids = world.allgather(std::as_bytes(std::span(&self, 1)));
    std::vector<char> data(n);
    std::string said;
    try {
      if (rank == 1) {
        raise(SIGSTOP);
        recv(*transport, data.data(), n, 0, {}, {1});
      } else {
        std::this_thread::sleep_for(300ms);
        Leg message;
        message.in = data.data();
        message.bytes = n;
        if (leaves) {
          launch(*transport, SendAndLeave{transport->table(), message}, {1});
        } else {
          send<char>(*transport, message, 1, CopyProduce{}, {1});
        }
      }
      said = "nothing";
    } catch (const RunError& error) {
      said = name(error.reason);
    }
    if (rank == 0) {
      pid_t other = 0;
      std::memcpy(&other, pids[1].data(), sizeof other);
      kill(other, SIGCONT);
    }
    // A message that was half sent is ignored.
    world.reset();
    transport->reset();
    for (uint64_t call = 0; call < 3; ++call) {
      const auto sent = message_of<char>(call * 2 + uint64_t(rank), 5000),
                 expected = message_of<char>(call * 2 + 1 - uint64_t(rank), 5000);
      std::vector<char> got(5000);
      rank == 0 ? send(*transport, sent.data(), 5000, 1, {}, {1})
                : recv(*transport, got.data(), 5000, 0, {}, {1});
      rank == 1 ? send(*transport, sent.data(), 5000, 0, {}, {1})
                : recv(*transport, got.data(), 5000, 1, {}, {1});
      if (got != expected) return said + ", then wrong";
    }
    world.barrier();
    return said + ", then good";
  });
  EXPECT_EQ(all.said(0), "timed_out, then good");
  EXPECT_EQ(all.said(1), "timed_out, then good");
}

TEST(Connections, APeerThatDoesNotReadEndsALaunchAtItsDeadline) { expect_end_at_deadline(false); }
TEST(Connections, APeerThatDoesNotReadEndsAProxyThatIsLeftAlone) { expect_end_at_deadline(true); }

TEST(Connections, MemoryThatOneRankLacksIsAnErrorOfAll) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  const struct {
    ProxyKind proxy;
    long megabytes;
    const char* what;
  } cases[] = {
      {ProxyKind::shared_memory, 160, "what a proxy is to send"},  // and enough for the windows of both ranks
      {ProxyKind::tcp, 40, "rings"},
      {ProxyKind::tcp, 110, "what a proxy is to send"},
  };
  for (const auto& one : cases) {
    const std::string address = fresh_address();
    Processes all(2, [&](int rank) -> std::string {
      World world = World::join(address, rank, 2, {.timeout = 60s});
      std::string said;
      {
        std::optional<ScarceMemory> scarce;
        if (rank == 1) scarce.emplace(one.megabytes);
        said = message_of_error<RunError>(
            [&] { port_rendezvous(world, rings(1, 2, uint64_t{16} << 20), one.proxy); });
      }
      port_rendezvous(world, rings(1, 2, 256), one.proxy);  // the ranks are still in step
      return said;
    });
    for (int rank = 0; rank < 2; ++rank) {
      const std::string said = all.said(rank);
      EXPECT_EQ(said.find("rank 1: 671"), 0u) << said;
      EXPECT_NE(said.find(std::string(" bytes of memory for ") + one.what + " cannot be had; give"),
                std::string::npos)
          << said;
    }
  }
}

/// The memory is missing before any of the rank's threads has a stack.
TEST(Connections, ALaunchThatOneRankHasNoMemoryForEndsItsPeers) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  const std::string address = fresh_address();
  Processes all(2, [&](int rank) -> std::string {
    World world = World::join(address, rank, 2, {.timeout = 60s});
    const auto transport = direct_rendezvous(world, rings(1, 2, 256));
    std::string said;
    {
      std::optional<ScarceMemory> scarce;
      if (rank == 1) scarce.emplace(64);
      said = message_of_error<RunError>([&] {
        char byte = 0;
        if (rank == 0) return recv(*transport, &byte, 1, 1, CopyConsume{}, {1});
        launch(*transport, [](const Group&, const Deadline&) { return Stop::none; }, {1u << 18, 1024});
      });
    }
    world.reset();
    transport->reset();
    char byte = rank == 1 ? 7 : 0;
    rank == 0 ? recv(*transport, &byte, 1, 1, CopyConsume{}, {1})
              : send(*transport, &byte, 1, 0, CopyProduce{}, {1});
    return byte == 7 ? said : "the next message is wrong";
  });
  const std::string what = "a launch of 262144 blocks of 1024 threads failed: no memory for what";
  EXPECT_EQ(all.said(0).find("aborted by rank 1: " + what), 0u) << all.said(0);
  EXPECT_EQ(all.said(1).find(what), 0u) << all.said(1);
}

}  // namespace
}  // namespace chorale
