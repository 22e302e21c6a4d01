// These tests run an all-to-all whose counts the kernel reads, over every kind of transport, in order and
// under seeds.

#include <fmt/format.h>

#include <numeric>

#include "collectives.hpp"
#include "support.hpp"
#include "tests/fused/expert_exchange.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

/// Returns how much one rank sends to another: often nothing, sometimes much.
uint64_t count_of(uint64_t call, uint64_t from, uint64_t to, uint64_t largest) {
  const uint64_t drawn = mix(call * 10007 + from * 101 + to + 1);
  if (drawn % 4 == 0) return 0;
  return (drawn >> 8) % (drawn % 4 == 1 ? 8 * largest + 1 : largest + 1);
}

/// Returns where shards of these numbers of runs are: one after the other, or from the last to the first,
/// with gaps between them.
template <class N>
std::vector<N> places(const std::vector<N>& counts, bool backwards) {
  std::vector<N> at(counts.size());
  N next = 0;
  for (size_t index = 0; index < counts.size(); ++index) {
    const size_t rank = backwards ? counts.size() - 1 - index : index;
    at[rank] = next;
    next = N(next + counts[rank] + (backwards ? 3 : 0));
  }
  return at;
}

/// Describes one call.
struct Shape {
  uint64_t largest = 40, each = 1;
  bool backwards = false;
  uint64_t most = unlimited, room = unlimited;
};

template <class T, class N>
void exchange(World& world, Transport& transport, uint64_t call, const Shape& shape,
              const LaunchConfig& config) {
  const uint64_t ranks = uint64_t(world.ranks()), self = uint64_t(world.rank());
  std::vector<N> to(ranks), from(ranks), kept(ranks), received(ranks, N(77));
  for (uint64_t peer = 0; peer < ranks; ++peer) {
    to[peer] = N(count_of(call, self, peer, shape.largest));
    from[peer] = N(count_of(call, peer, self, shape.largest));
    kept[peer] = N(std::min(uint64_t(from[peer]), shape.most));
  }
  const std::vector<N> send_at = places(to, shape.backwards), receive_at = places(kept, shape.backwards);
  const auto shard = [&](uint64_t sender, uint64_t receiver, uint64_t n) {
    return message_of<T>(call * 4099 + sender * 64 + receiver, n * shape.each);
  };
  const uint64_t sent = std::accumulate(to.begin(), to.end(), uint64_t{0}) + 3 * ranks;
  const uint64_t held = std::accumulate(from.begin(), from.end(), uint64_t{0}) + 3 * ranks;
  std::vector<T> in(sent * shape.each), out(held * shape.each, value_at<T>(99, 99)), expected = out;
  for (uint64_t peer = 0; peer < ranks; ++peer) {
    const auto mine = shard(self, peer, uint64_t(to[peer])), theirs = shard(peer, self, uint64_t(kept[peer]));
    std::copy(mine.begin(), mine.end(), in.begin() + int64_t(uint64_t(send_at[peer]) * shape.each));
    const uint64_t at = uint64_t(receive_at[peer]), left = at < shape.room ? shape.room - at : 0;
    std::copy_n(theirs.begin(), std::min(uint64_t(kept[peer]), left) * shape.each,
                expected.begin() + int64_t(at * shape.each));
  }
  const EndpointTable table = transport.table();
  const Counts<N> counts{to.data(),       shape.backwards ? send_at.data() : nullptr,
                         received.data(), shape.backwards ? receive_at.data() : nullptr,
                         shape.each,      shape.most,
                         shape.room};
  launch(transport, Call{[&](const Group& group, const Deadline& deadline) {
           return all_to_all_v<T>(group, table, leg_of<T>(in.data(), out.data(), 0), counts, CopyProduce{},
                                  CopyConsume{}, deadline);
         }},
         config);
  EXPECT_MESSAGE(out, expected) << "call " << call;
  EXPECT_EQ(received, from) << "call " << call;
}

TEST(AllToAllV, OverEveryTransport) {
  for (const Kind kind : all_kinds) {
    for (const uint32_t threads : {1u, 8u}) {
      SCOPED_TRACE(fmt::format("kind {}, {} threads", int(kind), threads));
      run_local(4, [&](World& world) {
        const auto transport = make(world, kind, rings(3, 2, 512));
        for (uint64_t call = 0; call < 6; ++call) {
          exchange<float, int64_t>(world, *transport, call, {call < 3 ? 40u : 700u, 1, call % 2 == 1},
                                   {3, threads});
        }
        exchange<uint8_t, int32_t>(world, *transport, 100, {1000, 7}, {2, threads});
        exchange<double, uint32_t>(world, *transport, 101, {90, 3, true}, {3, threads});
        exchange<bf16, uint64_t>(world, *transport, 102, {30, 100}, {1, threads});
      });
    }
  }
}

/// Each element is its position in all that is sent. Elements are stored by their position in all that
/// arrives.
struct UnevenPlaceProduce {
  template <class X>
  Vector<uint32_t> produce(const Ctx<X>& ctx) const {
    Vector<uint32_t> values{};
    for (uint32_t item = 0; item < ctx.count; ++item)
      values.item[item] = uint32_t(ctx.first + ctx.index + item);
    return values;
  }
};
struct UnevenPlaceConsume {
  uint32_t* out;
  template <class X>
  void consume(const Ctx<X>& ctx, const Vector<uint32_t>& values) const {
    for (uint32_t item = 0; item < ctx.count; ++item) out[ctx.first + ctx.index + item] = values.item[item];
  }
};

TEST(AllToAllV, HooksCountWhatTheyMakeWhateverAnElementIs) {
  for (const uint64_t packet_bytes : {0, 4096}) {
    run_local(2, [&](World& world) {
      const auto transport = direct_rendezvous(world, with_packets(rings(2, 2, 112), packet_bytes));
      constexpr uint64_t cols = 3, rows = 50, from = 7, to = 4;
      std::vector<uint32_t> out((to + rows) * cols), expected(out.size());
      std::iota(expected.begin() + to * cols, expected.end(), uint32_t(from * cols));
      const int64_t send[] = {0, world.rank() == 0 ? int64_t(rows) : 0}, send_at[] = {0, from},
                    receive_at[] = {to, to};
      Counts<> counts;
      counts.send = send;
      counts.send_at = send_at;
      counts.receive_at = receive_at;
      Leg message;
      message.elem = cols * sizeof(uint32_t);
      launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
        return all_to_all_v<uint32_t>(group, transport->table(), message, counts, UnevenPlaceProduce{},
                                      UnevenPlaceConsume{out.data()}, deadline);
      }},
             {2});
      if (world.rank() == 1) {
        EXPECT_MESSAGE(out, expected);
      }
    });
  }
}

/// Counts go as packets, and short shares that fit; others take the ring.
TEST(AllToAllV, AsPackets) {
  for (const uint64_t bytes : {1, 16, 64, 400, 5000, 40000}) {
    for (const uint32_t threads : {1u, 8u}) {
      SCOPED_TRACE(fmt::format("{} bytes of packets, {} threads", bytes, threads));
      run_local(4, [&](World& world) {
        const auto transport = direct_rendezvous(world, with_packets(rings(3, 2, 128), bytes));
        for (uint64_t call = 0; call < 12; ++call) {
          exchange<float, int64_t>(world, *transport, call, {call < 6 ? 40u : 3000u, 1, call % 2 == 1},
                                   {3, threads});
          exchange<float, int64_t>(world, *transport, call, {90, 2, call % 2 == 1, 25}, {3, threads});
          exchange<float, int64_t>(world, *transport, call, {90, 2, call % 2 == 1, unlimited, 60},
                                   {3, threads});
        }
        exchange<uint8_t, int32_t>(world, *transport, 100, {1000, 7}, {2, threads});
        exchange<double, uint32_t>(world, *transport, 101, {90, 3, true}, {3, threads});
        exchange<bf16, uint64_t>(world, *transport, 102, {30, 20}, {1, threads});
        const auto mixed = mesh(direct_rendezvous(world, with_packets(rings(3, 2, 128), bytes)),
                                port_rendezvous(world, rings(3, 2, 128), ProxyKind::shared_memory), 2);
        for (uint64_t call = 0; call < 6; ++call)
          exchange<float, int64_t>(world, *mixed, call, {40, 2, call % 2 == 1, 50}, {3, threads});
      });
    }
  }
}

TEST(AllToAllV, WhatIsLongOverAllBlocksAndLinksGoesThroughRings) {
  constexpr uint32_t blocks = 80;
  run_local(3, [&](World& world) {
    const auto transport = direct_rendezvous(world, with_packets(rings(blocks, 2, 1024), 1 << 15));
    const int peer = (world.rank() + 1) % 3;
    // Each of two links has half of the 1 MiB that may go as packets.
    for (const uint64_t n : {uint64_t(1) << 17, (uint64_t(1) << 17) + 1}) {
      const auto in = message_of<float>(uint64_t(world.rank()), 3 * n);
      std::vector<float> out(3 * n);
      const uint64_t send[] = {n, n, n};
      Counts<uint64_t> counts;
      counts.send = send;
      launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
        return all_to_all_v<float>(group, transport->table(), leg_of<float>(in.data(), out.data(), 0), counts,
                                   CopyProduce{}, CopyConsume{}, deadline);
      }},
             {blocks});
      for (uint64_t at = 0; at < 3 * n; ++at) {
        ASSERT_EQ(out[at], value_at<float>(at / n, n * uint64_t(world.rank()) + at % n)) << at;
      }
      EXPECT_EQ(sent_over(*transport, peer).second, n > 1 << 17);
    }
  });
}

TEST(AllToAllV, TenThousandMatricesInOneBinding) {
  run_local(3, [&](World& world) {
    const auto transport = direct_rendezvous(world, rings(2, 2, 64));
    for (uint64_t call = 0; call < 10000 && !testing::Test::HasFailure(); ++call) {
      exchange<uint16_t, int32_t>(world, *transport, call, {call % 50, 1 + call % 3, call % 5 == 0},
                                  {1 + uint32_t(call % 2), 1});
    }
  });
}

TEST(AllToAllV, WhatDoesNotFitIsDroppedAndTold) {
  for (const uint32_t threads : {1u, 8u}) {
    run_local(4, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(3, 3, 128));
      for (uint64_t call = 0; call < 20; ++call) {
        exchange<float, int64_t>(world, *transport, call, {90, 2, call % 2 == 1, 25}, {3, threads});
        exchange<float, int64_t>(world, *transport, call, {90, 2, call % 2 == 1, unlimited, 60},
                                 {3, threads});
        exchange<float, int64_t>(world, *transport, call, {90, 1, false, 30, call}, {2, threads});
      }
    });
  }
}

TEST(AllToAllV, IsRightInAThousandOrders) {
  for (uint64_t seed = 0; seed < 1000 && !testing::Test::HasFailure(); ++seed) {
    run_local(3,
              [&](World& world) {
                RendezvousOptions options = rings(2, 2 + uint32_t(seed % 3), 32);
                if (seed % 2 == 1) options.ring_at = RingAt::sender;
                if (seed % 5 > 1) options.packet_bytes = 16 * (seed % 5);
                const auto transport = direct_rendezvous(world, options);
                for (uint64_t call = 0; call < 3; ++call) {
                  exchange<char, int32_t>(world, *transport, seed * 3 + call, {12, 1 + seed % 4},
                                          {2, seed % 3 == 0 ? 4u : 1u});
                }
              },
              {.seed = seed});
  }
}

/// Other collectives use the same links before and after it.
TEST(AllToAllV, LeavesTheStreamWhereOthersGoOn) {
  for (const bool packets : {false, true}) {
    run_local(4, [&](World& world) {
      const auto transport = packets ? direct_rendezvous(world, with_packets(rings(2, 3, 64), 100))
                                     : make(world, Kind::mixed, rings(2, 3, 64));
      const EndpointTable table = transport->table();
      for (uint64_t call = 0; call < 10; ++call) {
        exchange<int32_t, int32_t>(world, *transport, call, {}, {2, 1});
        const auto in = message_of<int32_t>(call * 10 + uint64_t(world.rank()), 101);
        std::vector<int32_t> out(404), expected;
        launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
          return all_gather<int32_t>(group, table, leg_of<int32_t>(in.data(), out.data(), 101), {0, 404},
                                     CopyProduce{}, CopyConsume{}, deadline);
        }},
               {2, 1});
        for (uint64_t rank = 0; rank < 4; ++rank) {
          const auto theirs = message_of<int32_t>(call * 10 + rank, 101);
          expected.insert(expected.end(), theirs.begin(), theirs.end());
        }
        EXPECT_MESSAGE(out, expected);
      }
    });
  }
}

/// Returns rank 0's error if the ranks make this call. Each rank gets its own counts.
template <class Prepare>
std::string refusal(const RendezvousOptions& options, const Prepare& prepare) {
  return message_of_error<std::logic_error>([&] {
    run_local(2, [&](World& world) {
      const auto transport = direct_rendezvous(world, options);
      const EndpointTable table = transport->table();
      std::vector<int64_t> to(2, 5);
      std::vector<float> in(100), out(100);
      Counts<> counts{to.data()};
      LaunchConfig config{1, 1};
      prepare(world.rank(), to, counts, config);
      launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
        return all_to_all_v<float>(group, table, leg_of<float>(in.data(), out.data(), 0), counts,
                                   CopyProduce{}, CopyConsume{}, deadline);
      }},
             config);
    });
  });
}

TEST(AllToAllV, WrongCallsAreRefused) {
  EXPECT_EQ(refusal(rings(1, 1, 64), [](int, auto&, auto&, auto&) {}),
            "all_to_all_v() needs rings of at least two slots");
  const auto negative = [](int rank, auto& to, auto&, auto&) { to[1] = rank == 0 ? -3 : 5; };
  EXPECT_EQ(refusal(rings(1, 2, 64), negative), "all_to_all_v(): rank 0 has a count of -3 for rank 1");
  // Data that is sent from there, or arrives there, would be before the buffer.
  const int64_t places[] = {0, -4};
  // Only one rank is wrong, because with two either may report it first.
  const auto sent_from = [&](int rank, auto&, Counts<>& counts, auto&) {
    if (rank == 0) counts.send_at = places;
  };
  const auto kept_at = [&](int rank, auto&, Counts<>& counts, auto&) {
    if (rank == 0) counts.receive_at = places;
  };
  for (const uint64_t packet_bytes : {0, 1024}) {
    EXPECT_EQ(refusal(with_packets(rings(1, 2, 64), packet_bytes), sent_from),
              "all_to_all_v(): rank 0 has a send_at of -4 for rank 1: places count from 0");
    EXPECT_EQ(refusal(with_packets(rings(1, 2, 64), packet_bytes), kept_at),
              "all_to_all_v(): rank 0 has a receive_at of -4 for rank 1: places count from 0");
  }
  EXPECT_EQ(refusal(rings(1, 2, 64), [](int, auto&, Counts<>& counts, auto&) { counts.each = 0; }),
            "Counts::each is 0: a run has at least one element");
  const std::string runs = refusal(
      rings(1, 2, 64), [](int rank, auto&, Counts<>& counts, auto&) { counts.each = rank == 0 ? 1 : 2; });
  EXPECT_NE(runs.find("counts runs of"), std::string::npos) << runs;
  EXPECT_NE(runs.find("4 bytes, in 1 groups"), std::string::npos) << runs;
  EXPECT_NE(runs.find("8 bytes, in 1 groups"), std::string::npos) << runs;
}

/// Tokens go to the ranks of their experts and come back, each to its old place.
TEST(AllToAllV, TokensToExpertsAndBack) {
  const uint32_t cols = 24, tokens = 50;
  for (const uint32_t threads : {1u, 8u}) {
    run_local(4, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(3, 2, 512));
      const uint64_t self = uint64_t(world.rank());
      const auto weight_of = [](uint64_t token) { return float(1 + token % 4); };
      const auto rank_of = [](uint64_t call, uint64_t rank, uint64_t token) {
        return mix(call * 1000 + rank * 100 + token) % 4;
      };
      for (uint64_t call = 0; call < 3; ++call) {
        // This order says which tokens go where: those of rank 0 first.
        std::vector<int32_t> order, to(4), came(4);
        std::vector<float> weights(tokens);
        for (uint64_t rank = 0; rank < 4; ++rank) {
          for (uint32_t token = 0; token < tokens; ++token) {
            if (rank_of(call, self, token) == rank) order.push_back(int32_t(token)), ++to[rank];
          }
        }
        for (uint32_t token = 0; token < tokens; ++token) weights[token] = weight_of(token);
        const auto in = message_of<float>(call * 10 + self, tokens * cols);
        std::vector<float> there(4 * tokens * cols), back(tokens * cols), expected(tokens * cols);
        launch(*transport,
               DispatchTokens<float>{transport->table(), in.data(), there.data(), cols, order.data(),
                                     to.data(), came.data(), 4 * tokens},
               {3, threads});
        uint64_t row = 0;
        for (uint64_t rank = 0; rank < 4; ++rank) {
          const auto theirs = message_of<float>(call * 10 + rank, tokens * cols);
          uint64_t n = 0;
          for (uint32_t token = 0; token < tokens; ++token) {
            if (rank_of(call, rank, token) != self) continue;
            ASSERT_EQ(first_difference(&there[row * cols], &theirs[token * cols], cols), cols);
            ++row, ++n;
          }
          ASSERT_EQ(n, uint64_t(came[rank]));
        }
        for (float& value : there) value += 1;  // the experts
        launch(*transport,
               CombineTokens<float>{transport->table(), there.data(), back.data(), cols, order.data(),
                                    came.data(), weights.data()},
               {3, threads});
        for (uint64_t at = 0; at < expected.size(); ++at) expected[at] = (in[at] + 1) * weight_of(at / cols);
        EXPECT_MESSAGE(back, expected);
      }
    });
  }
}

}  // namespace
}  // namespace chorale
