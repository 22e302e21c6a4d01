// These tests have ranks that are processes. They run the same kernels over memory that both map, through
// proxies, and mixed.

#include "tests/unit/world/processes.hpp"

#include <cstdlib>

#include "tests/unit/tiles/support.hpp"

namespace chorale {
namespace {

using namespace test;

struct AllReduce {
  EndpointTable table;
  Leg message;
  Stop operator()(const Group& group, const Deadline& deadline) const {
    return all_reduce<ReduceOp::sum, int32_t>(group, table, message, CopyProduce{}, CopyConsume{}, deadline);
  }
};

std::string exchange(World& world, Transport& transport) {
  const uint64_t n = 5001;
  const int ranks = world.ranks(), self = world.rank(), right = (self + 1) % ranks,
            left = (self + ranks - 1) % ranks;
  for (uint64_t call = 0; call < 5; ++call) {
    const uint32_t threads = call % 2 ? 4 : 1;
    const auto sent = message_of<int32_t>(call * 10 + uint64_t(self), n);
    const auto expected = message_of<int32_t>(call * 10 + uint64_t(left), n);
    std::vector<int32_t> got(n), sum(n);
    sendrecv(transport, sent.data(), got.data(), n, right, left, {}, {}, {2, threads});
    if (got != expected) return "sendrecv is wrong";
    Leg message;
    message.in = sent.data();
    message.out = got.data();
    message.bytes = n * 4;
    launch(transport, AllReduce{transport.table(), message}, {2, threads});
    for (uint64_t rank = 0; rank < uint64_t(ranks); ++rank) {
      for (uint64_t at = 0; at < n; ++at) sum[at] += value_at<int32_t>(call * 10 + rank, at);
    }
    if (got != sum) return "all_reduce is wrong";
  }
  return "";
}

TEST(Processes, EveryTransport) {
  const std::string address = fresh_address();
  Processes all(3, [&](int rank) -> std::string {
    World world = World::join(address, rank, 3);
    const RendezvousOptions options = rings(2, 2, 512);
    const std::shared_ptr<Transport> direct = direct_rendezvous(world, options);
    const std::shared_ptr<Transport> port = port_rendezvous(world, options, ProxyKind::shared_memory);
    const std::shared_ptr<Transport> mixed = mesh(direct, port, 2);
    for (const auto& transport : {direct, port, mixed}) {
      const std::string wrong = exchange(world, *transport);
      if (!wrong.empty()) return wrong;
    }
    return "good";
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(all.said(rank), "good");
}

TEST(Processes, ADeadPeerIsAnErrorOfTheOthers) {
  const std::string address = fresh_address();
  Processes all(3, [&](int rank) -> std::string {
    World world = World::join(address, rank, 3);
    const auto transport = direct_rendezvous(world, rings(1, 2, 512));
    std::vector<char> data(5000);
    if (rank == 2) std::_Exit(0);
    try {
      recv(*transport, data.data(), data.size(), 2, {}, {1});
    } catch (const RunError& error) {
      return name(error.reason);
    }
    return "nothing";
  });
  EXPECT_EQ(all.said(0), "peer_lost");
  EXPECT_EQ(all.said(1), "peer_lost");
}

}  // namespace
}  // namespace chorale
