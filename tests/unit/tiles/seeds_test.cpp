// Tiles under the deterministic scheduler: 1000 orders of everything that ranks, blocks and threads do. What
// is right is right in all of them, and what is known to be wrong fails in the first.

#include "support.hpp"

namespace chorale {
namespace {

using namespace test;

constexpr uint64_t seeds = 1000;

/// Everything at once: to the right in turns, to the left by roles, round by round.
struct Everything {
  EndpointTable table;
  const char* in;
  char* out;
  uint64_t n;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const int right = (table.self + 1) % table.ranks, left = (table.self + table.ranks - 1) % table.ranks;
    const Split part = group.split_interleaved(2);
    Leg message;
    message.in = in;
    message.out = out;
    message.bytes = n;
    const Leg share = share_of(message, part.group.id, part.group.count);
    // Both parts have their channels: the second part those behind the first's.
    const uint32_t channel = part.part * group.count / 2 + part.group.id;
    if (part.part == 0) {
      return sendrecv_tiles<char>(part.group, table.at(right, channel), table.at(left, channel), share, share,
                                  CopyProduce{}, CopyConsume{}, deadline);
    }
    Leg own = share;
    own.out = out + n;
    Stop stop = Stop::none;
    if (table.self % 2 == 0) {
      stop = send_tiles<char>(part.group, table.at(left, channel), share, CopyProduce{}, deadline);
      if (stop == Stop::none)
        stop = recv_tiles<char>(part.group, table.at(right, channel), own, CopyConsume{}, deadline);
    } else {
      stop = recv_tiles<char>(part.group, table.at(right, channel), own, CopyConsume{}, deadline);
      if (stop == Stop::none)
        stop = send_tiles<char>(part.group, table.at(left, channel), share, CopyProduce{}, deadline);
    }
    return stop;
  }
};

TEST(Seeds, TilesAreRightInAThousandOrders) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const uint64_t n = 1 + mix(seed) % 400;
    const uint32_t threads = seed % 3 == 0 ? 4 : 1, depth = 2 + uint32_t(seed % 3);
    run_local(4,
              [&](World& world) {
                RendezvousOptions options = rings(4, depth, 32);
                if (seed % 2 == 1) options.ring_at = RingAt::sender;
                const auto transport = direct_rendezvous(world, options);
                const uint64_t right = uint64_t(world.rank() + 1) % 4, left = uint64_t(world.rank() + 3) % 4;
                for (uint64_t call = 0; call < 2; ++call) {
                  const auto of = [&](uint64_t rank) {
                    return message_of<char>(seed * 100 + call * 10 + rank, n);
                  };
                  const auto in = of(uint64_t(world.rank()));
                  std::vector<char> out(2 * n);
                  launch(*transport, Everything{transport->table(), in.data(), out.data(), n}, {4, threads});
                  std::vector<char> expected = of(left), second = of(right);
                  // Each part of the groups moves a whole message.
                  expected.insert(expected.end(), second.begin(), second.end());
                  ASSERT_EQ(first_difference(out.data(), expected.data(), 2 * n), 2 * n) << "seed " << seed;
                }
              },
              {.seed = seed});
  }
}

/// The form that check_transfer() refuses.
struct SendThenReceive {
  EndpointTable table;
  Leg message;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(1 - table.self, group.id);
    const Leg share = share_of(message, group.id, group.count);
    const Stop stop = send_tiles<char>(group, e, share, CopyProduce{}, deadline);
    return stop != Stop::none ? stop : recv_tiles<char>(group, e, share, CopyConsume{}, deadline);
  }
};

/// Whether it ends, with the right data.
bool send_then_receive(uint64_t bytes, uint64_t seed) {
  bool right = true;
  try {
    run_local(2,
              [&](World& world) {
                const auto transport = direct_rendezvous(world, rings(1, 2, 64));
                const auto in = message_of<char>(seed * 2 + uint64_t(world.rank()), bytes);
                std::vector<char> out(bytes);
                Leg message;
                message.in = in.data();
                message.out = out.data();
                message.bytes = bytes;
                launch(*transport, SendThenReceive{transport->table(), message}, {1});
                const auto expected = message_of<char>(seed * 2 + uint64_t(1 - world.rank()), bytes);
                if (out != expected) right = false;
              },
              {.seed = seed});
  } catch (const RunError& error) {
    EXPECT_EQ(error.reason, RunError::Reason::deadlock);
    return false;
  }
  return right;
}

TEST(Seeds, SendThenReceiveHangsJustWhereCheckTransferSaysSo) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_TRUE(send_then_receive(128, seed)) << "seed " << seed;
    EXPECT_FALSE(send_then_receive(129, seed)) << "seed " << seed;
  }
  run_local(1, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 2, 64));
    EXPECT_NO_THROW(check_transfer(*transport, 128, 1, 1, Form::send_then_receive));
    EXPECT_THROW(check_transfer(*transport, 129, 1, 1, Form::send_then_receive), UsageError);
  });
}

/// A ring of one slot, by turns: the other form that check_transfer() refuses.
TEST(Seeds, TurnsOverOneSlotHang) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const uint64_t bytes : {64, 65}) {
      bool ended = true;
      try {
        run_local(2,
                  [&](World& world) {
                    const auto transport = direct_rendezvous(world, rings(1, 1, 64));
                    std::vector<char> data(bytes);
                    Leg leg;
                    leg.in = leg.out = data.data();
                    leg.bytes = bytes;
                    const int peer = 1 - world.rank();
                    launch(*transport,
                           SendRecvKernel<char, CopyProduce, CopyConsume>{
                               transport->table(), leg, leg, peer, peer, {}, {}},
                           {1});
                  },
                  {.seed = seed});
      } catch (const RunError&) {
        ended = false;
      }
      EXPECT_EQ(ended, bytes == 64) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace chorale
