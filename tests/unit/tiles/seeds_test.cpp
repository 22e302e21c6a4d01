// These tests run tiles under the deterministic scheduler, in 1000 orders of everything that ranks, blocks
// and threads do. Right programs are right in all of them, and programs that are known to be wrong fail in
// the first.

#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

constexpr uint64_t seeds = 1000;

/// Does everything at once: sends to the right in turns and to the left by roles, round by round.
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
    // Each part has its own channels: the second part's come after the first's.
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

/// Rank 0 sends, the others forward, the last one keeps. If Sums, each adds its own data. It runs over any
/// links.
template <bool Sums>
struct ForwardOver {
  using T = uint32_t;
  using Pass = std::conditional_t<Sums, AccumulateForward<ReduceOp::sum, T>, CopyConsume>;
  using Keep = std::conditional_t<Sums, AccumulateConsume<ReduceOp::sum, T>, CopyConsume>;
  EndpointTable table;
  Leg message;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    Leg first = message, second = message;
    first.bytes = message.bytes / 2 / sizeof(T) * sizeof(T);
    second.begin = first.bytes;
    second.bytes = message.bytes - first.bytes;
    Stop stop = forward(group, share_of(first, group.id, group.count), deadline);
    if (stop == Stop::none) stop = forward(group, share_of(second, group.id, group.count), deadline);
    return stop != Stop::none ? stop : detail::drain_links(group, table, deadline);
  }

  Stop forward(const Group& group, const Leg& share, const Deadline& deadline) const {
    const int self = table.self;
    if (self + 1 == table.ranks) {
      const Endpoint& from = table.at(self - 1, group.id);
      return with_link(
          from, [&](auto in) { return recv_tiles<T, decltype(in)>(group, from, share, Keep{}, deadline); });
    }
    const Endpoint& to = table.at(self + 1, group.id);
    return with_link(to, [&](auto out) {
      using Out = decltype(out);
      if (self == 0) return send_tiles<T, Out>(group, to, share, CopyProduce{}, deadline);
      const Endpoint& from = table.at(self - 1, group.id);
      return with_link(from, [&](auto in) {
        return forward_tiles<T, decltype(in), Out>(group, from, to, share, Pass{}, deadline);
      });
    });
  }
};

/// In the mesh rank 1 forwards from a direct link to a proxy, and rank 2 the other way.
template <bool Sums>
void forward_over(World& world, uint64_t seed) {
  const Kind kind = seed % 4 == 0 ? Kind::direct : seed % 4 == 1 ? Kind::port : Kind::mixed;
  const auto transport = make(world, kind, rings(2, 1 + uint32_t(mix(seed + 3) % 3), 32));
  const uint64_t n = 1 + mix(seed) % 60;
  const bool last = world.rank() + 1 == world.ranks();
  for (uint64_t call = 0; call < 2; ++call) {
    const auto of = [&](int rank) {
      return message_of<uint32_t>(seed * 100 + call * 10 + uint64_t(rank), n);
    };
    std::vector<uint32_t> in = of(world.rank()), out(n), expected = of(0);
    for (int rank = 1; Sums && rank < world.ranks(); ++rank) {
      const auto theirs = of(rank);
      for (uint64_t at = 0; at < n; ++at) expected[at] += theirs[at];
    }
    if (Sums && last) out = in;  // to which it adds what arrives
    Leg message;
    message.in = in.data();
    message.out = Sums && !last ? nullptr : out.data();
    message.bytes = n * sizeof(uint32_t);
    message.elem = sizeof(uint32_t);
    message.signal_bytes = seed % 5 == 0 ? 16 : 0;
    launch(*transport, ForwardOver<Sums>{transport->table(), message}, {2, seed % 3 == 0 ? 4u : 1u});
    if (Sums ? last : world.rank() > 0) {
      ASSERT_EQ(first_difference(out.data(), expected.data(), n), n) << "seed " << seed;
    }
  }
}

TEST(Seeds, ForwardingIsRightInAThousandOrders) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    run_local(4,
              [&](World& world) {
                mix(seed + 7) % 2 ? forward_over<true>(world, seed) : forward_over<false>(world, seed);
              },
              {.seed = seed});
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

/// Has the form that check_transfer() refuses.
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

/// Returns whether it ends, with the right data.
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

/// Uses a ring of one slot in turns, which is the other form that check_transfer() refuses.
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

/// Each rank's message goes round the ring to all others: one rank sends it, others forward it, and the last
/// one keeps it.
struct AroundTheRing {
  EndpointTable table;
  Leg message;
  uint32_t* sum;

  struct Add {
    uint32_t* sum;
    template <class X>
    void consume(const Ctx<X>& ctx, const Vector<uint32_t>& values) const {
      for (uint32_t item = 0; item < ctx.count; ++item) sum[ctx.index + item] += values.item[item];
    }
  };

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& right = table.at((table.self + 1) % table.ranks, group.id);
    const Endpoint& left = table.at((table.self + table.ranks - 1) % table.ranks, group.id);
    Stop stop = send_tiles<uint32_t>(group, right, message, CopyProduce{}, deadline);
    for (int step = 2; step < table.ranks && stop == Stop::none; ++step) {
      stop = forward_tiles<uint32_t>(group, left, right, message, Add{sum}, deadline);
    }
    return stop != Stop::none ? stop : recv_tiles<uint32_t>(group, left, message, Add{sum}, deadline);
  }
};

/// docs/fused-kernels.md says how long a message may be.
TEST(Seeds, ForwardingAroundARingNeedsAFreeSlot) {
  constexpr uint64_t depth = 3, in_slot = 8;
  int hung = 0;  // without a free slot most orders hang, but not all
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (const uint64_t n : {(depth - 1) * in_slot, depth * in_slot}) {
      bool ended = true;
      try {
        run_local(
            4,
            [&](World& world) {
              const auto transport =
                  direct_rendezvous(world, rings(1, uint32_t(depth), in_slot * sizeof(uint32_t)));
              std::vector<uint32_t> sum(n), expected(n);
              for (int rank = 0; rank < world.ranks(); ++rank) {
                if (rank == world.rank()) continue;
                const auto theirs = message_of<uint32_t>(seed * 10 + uint64_t(rank), n);
                for (uint64_t at = 0; at < n; ++at) expected[at] += theirs[at];
              }
              const auto in = message_of<uint32_t>(seed * 10 + uint64_t(world.rank()), n);
              launch(*transport,
                     AroundTheRing{transport->table(), leg_of<uint32_t>(in.data(), nullptr, n), sum.data()},
                     {1, seed % 2 ? 4u : 1u});
              EXPECT_MESSAGE(sum, expected);
            },
            {.seed = seed});
      } catch (const RunError&) {
        ended = false;
      }
      if (n == depth * in_slot) {
        hung += ended ? 0 : 1;
      } else {
        EXPECT_TRUE(ended) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(hung, 0);
}

}  // namespace
}  // namespace chorale
