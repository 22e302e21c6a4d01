// These tests send messages between ranks, in random lists, and compare them with what was sent. They run as
// threads, as processes and in any order.

#include <thread>

#include "support.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale {
namespace {

using namespace test;

TEST(Exchange, DrawnListsOfEveryNumberOfRanks) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const uint32_t blocks : {1u, 3u}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << blocks << " blocks");
      run_local(ranks, [&](World& world) {
        Exchange exchange(world, {.slot_bytes = 256, .slots = 2, .blocks_per_peer = blocks}, on_cpu());
        for (uint64_t call = 0; call < 12; ++call) {
          EXPECT_EQ(make_call(world, exchange, call, 3, call % 3 == 0 ? 5000 : 700), "") << "call " << call;
        }
      });
    }
  }
}

/// Message k of a peer and direction is in call k on some ranks, while others make one call of all.
TEST(Exchange, CallsThatAreCutOnSomeRanks) {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    run_local(ranks, [&](World& world) {
      Exchange exchange(world, {.slot_bytes = 64, .slots = 2, .blocks_per_peer = 3}, on_cpu());
      for (uint64_t call = 0; call < 20; ++call) {
        Buffers buffers(messages_of(call, ranks, 5, 400), world.rank());
        if ((uint64_t(world.rank()) + call) % 2 == 0) {
          exchange.exchange(buffers.sends, buffers.recvs);
        } else {
          for (int k = 0; k < 5; ++k)
            exchange.exchange(numbered(buffers.sends, k), numbered(buffers.recvs, k));
        }
        EXPECT_EQ(buffers.wrong(), "") << "call " << call;
      }
    });
  }
}

/// The rings have one slot, slots that hold no more than the length of a message, or a number of slots that
/// is not a power of two.
TEST(Exchange, RingsOfEveryShape) {
  for (const uint64_t slot : {16u, 32u, 48u, 80u, 1000u}) {
    for (const uint32_t slots : {1u, 2u, 5u}) {
      SCOPED_TRACE(testing::Message() << slots << " slots of " << slot);
      run_local(3, [&](World& world) {
        Exchange exchange(world, {.slot_bytes = slot, .slots = slots, .blocks_per_peer = 2}, on_cpu());
        for (uint64_t call = 0; call < 6; ++call)
          EXPECT_EQ(make_call(world, exchange, call + slot, 4, 600), "") << "call " << call;
      });
    }
  }
}

TEST(Exchange, IsRightInAThousandOrders) {
  for (uint64_t seed = 0; seed < 1000 && !testing::Test::HasFailure(); ++seed) {
    run_local(2 + int(seed % 3),
              [&](World& world) {
                const uint32_t slots = 1 + uint32_t(seed % 3), blocks = 1 + uint32_t(seed % 2);
                Exchange exchange(world, {.slot_bytes = 32, .slots = slots, .blocks_per_peer = blocks},
                                  on_cpu());
                for (uint64_t call = 0; call < 2; ++call)
                  EXPECT_EQ(make_call(world, exchange, seed * 2 + call, 2, 200), "") << "seed " << seed;
              },
              {.seed = seed});
  }
}

TEST(Exchange, Processes) {
  for (const int ranks : {2, 5}) {
    const std::string address = fresh_address();
    Processes all(ranks, [&](int rank) -> std::string {
      World world = World::join(address, rank, ranks);
      Exchange exchange(world, {.slot_bytes = 1024, .slots = 2}, on_cpu());
      for (uint64_t call = 0; call < 20; ++call) {
        const std::string wrong = make_call(world, exchange, call, 3, 9000);
        if (!wrong.empty()) return wrong;
      }
      world.barrier();
      return "good";
    });
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(all.said(rank), "good");
  }
}

/// Each rank sends more than all slots hold, to the next rank and to all ranks. No rank receives before it
/// sends.
TEST(Exchange, LongerThanAllRings) {
  run_local(4, [](World& world) {
    Exchange exchange(world, {.slot_bytes = 4096, .slots = 2}, on_cpu());
    const int self = world.rank();
    const uint64_t n = 1 << 20;
    std::vector<uint8_t> out(n, uint8_t(self + 1)), in(4 * n);
    const SendTo right{out.data(), n, (self + 1) % 4};
    const RecvFrom left{in.data(), n, (self + 3) % 4};
    exchange.exchange({&right, 1}, {&left, 1});
    EXPECT_EQ(in[0], (self + 3) % 4 + 1);
    EXPECT_EQ(in[n - 1], (self + 3) % 4 + 1);
    std::vector<SendTo> sends;
    std::vector<RecvFrom> recvs;
    for (int peer = 0; peer < 4; ++peer) {
      sends.push_back({out.data(), n, peer});
      recvs.push_back({in.data() + uint64_t(peer) * n, n, peer});
    }
    exchange.exchange(sends, recvs);
    for (uint64_t peer = 0; peer < 4; ++peer) EXPECT_EQ(in[peer * n + n / 2], peer + 1);
  });
}

/// A call may receive what several calls send, and the reverse, if messages are in order.
TEST(Exchange, CallsNeedNotBeAlike) {
  run_local(2, [](World& world) {
    Exchange exchange(world, {}, on_cpu());
    std::vector<int> data(3, 0);
    if (world.rank() == 0) {
      const int first = 1, second = 2, third = 3;
      exchange.send(&first, 4, 1);
      const SendTo both[] = {{&second, 4, 1}, {&third, 4, 1}};
      exchange.exchange(both, {});
      exchange.recv(data.data(), 4, 1);
      EXPECT_EQ(data[0], 6);
    } else {
      const RecvFrom two[] = {{&data[0], 4, 0}, {&data[1], 4, 0}};
      exchange.exchange({}, two);
      exchange.recv(&data[2], 4, 0);
      EXPECT_EQ(data, (std::vector<int>{1, 2, 3}));
      const int sum = 6;
      exchange.send(&sum, 4, 0);
    }
    exchange.exchange({}, {});
  });
}

/// Exchanges in different worlds may run at the same time: both ranks send more than the rings hold before
/// they receive.
TEST(Exchange, BesideEachOther) {
  const std::string there = fresh_address(), back = fresh_address();
  Processes all(2, [&](int rank) -> std::string {
    std::vector<uint8_t> out(1 << 20, uint8_t(5 + rank)), in(1 << 20);
    const auto line = [&](const std::string& address, bool sends) {
      World world = World::join(address, sends ? 0 : 1, 2);
      Exchange exchange(world, {.slot_bytes = 4096, .slots = 2}, on_cpu());
      sends ? exchange.send(out.data(), out.size(), 1) : exchange.recv(in.data(), in.size(), 0);
      world.barrier();
    };
    std::thread sender(line, rank == 0 ? there : back, true);
    usleep(100000);
    line(rank == 0 ? back : there, false);
    sender.join();
    return in == std::vector<uint8_t>(1 << 20, uint8_t(6 - rank)) ? "good" : "wrong";
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(all.said(rank), "good");
}

TEST(Exchange, MoreMessagesThanAKernelTakes) {
  run_local(3, [](World& world) {
    Exchange exchange(world, {.slot_bytes = 64}, on_cpu());
    EXPECT_EQ(make_call(world, exchange, 1, 300, 50), "");
  });
}

}  // namespace
}  // namespace chorale
