// These tests check device collectives whose messages go as packets, and which collectives those are.

#include <fmt/format.h>

#include "collectives.hpp"

namespace chorale {
namespace {

using namespace test;

TEST(Collectives, ShortMessagesGoAsPackets) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const uint32_t threads : {1u, 3u, 8u}) {
      for (const uint64_t n : {0, 1, 7, 300}) {
        SCOPED_TRACE(fmt::format("{} ranks, {} threads, {} elements", ranks, threads, n));
        run_local(ranks, [&](World& world) {
          const auto transport = direct_rendezvous(world, with_packets(rings(2, 2, 64), 1 << 12));
          all_four<float>(world, *transport, n, {2, threads});
          all_four<uint8_t>(world, *transport, n, {2, threads});
          const int peer = (world.rank() + 1) % ranks;
          EXPECT_FALSE(sent_over(*transport, peer).second);
          // There is one per call, except for the sum of one element less than one.
          EXPECT_EQ(sent_over(*transport, peer).first, n == 0 ? 0u : n == 1 && ranks == 1 ? 12u : 16u);
        });
      }
    }
  }
}

TEST(Collectives, WhatPacketsDoNotHoldGoesThroughRings) {
  // These are the elements of a group's share that just fit in 256 bytes of packets, and in 16 KiB.
  for (const auto& [room, fit] : {std::pair<uint64_t, uint64_t>{256, 64}, {1 << 20, 4096}}) {
    run_local(2, [&, room = room, fit = fit](World& world) {
      const auto transport = direct_rendezvous(world, with_packets(rings(1, 2, 256), room));
      const int peer = 1 - world.rank();
      const EndpointTable table = transport->table();
      const auto gather = [&](uint64_t n) {
        const auto in = message_of<float>(uint64_t(world.rank()), n);
        std::vector<float> out(2 * n);
        launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
          return all_gather<float>(group, table, leg_of<float>(in.data(), out.data(), n), {0, 4 * n},
                                   CopyProduce{}, CopyConsume{}, deadline);
        }},
               {1, 4});
        for (uint64_t at = 0; at < 2 * n; ++at) ASSERT_EQ(out[at], value_at<float>(at / n, at % n)) << at;
      };
      for (uint64_t call = 0; call < 5; ++call) {
        gather(fit);
        EXPECT_EQ(sent_over(*transport, peer), std::make_pair(call + 1, call != 0));
        gather(fit + 1);
        EXPECT_EQ(sent_over(*transport, peer), std::make_pair(call + 1, true));
      }
    });
  }
}

TEST(Collectives, WhatIsLongOverAllBlocksAndLinksGoesThroughRings) {
  // 16 KiB per block and link fit, and 1 MiB per rank.
  for (const auto& [ranks, blocks] : {std::pair<int, uint32_t>{2, 64}, {3, 32}}) {
    run_local(ranks, [&, blocks = blocks](World& world) {
      const auto transport = direct_rendezvous(world, with_packets(rings(blocks + 1, 2, 1024), 1 << 15));
      const int peer = (world.rank() + 1) % world.ranks();
      const auto exchange = [&](uint32_t blocks) {
        const uint64_t n = 4096 * blocks, all = n * uint64_t(world.ranks());
        const auto in = message_of<float>(uint64_t(world.rank()), all);
        std::vector<float> out(all);
        launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
          return all_to_all<float>(group, transport->table(), leg_of<float>(in.data(), out.data(), n),
                                   {4 * n, 4 * n}, CopyProduce{}, CopyConsume{}, deadline);
        }},
               {blocks, 1});
        for (uint64_t at = 0; at < all; ++at) {
          ASSERT_EQ(out[at], value_at<float>(at / n, n * uint64_t(world.rank()) + at % n)) << at;
        }
      };
      exchange(blocks);
      EXPECT_EQ(sent_over(*transport, peer), std::make_pair(uint64_t{1}, false));
      exchange(blocks + 1);
      EXPECT_EQ(sent_over(*transport, peer), std::make_pair(uint64_t{1}, true));
    });
  }
}

TEST(Collectives, LinksWithoutPacketsAndPartsOfBlocksUseRings) {
  run_local(4, [](World& world) {
    const RendezvousOptions options = rings(2, 2, 512);
    const std::shared_ptr<Transport> near = direct_rendezvous(world, with_packets(options, 1 << 12));
    const auto some = mesh(near, port_rendezvous(world, options, ProxyKind::shared_memory), 2);
    all_four<float>(world, *some, 100, {2, 4});
    EXPECT_EQ(sent_over(*near, world.rank() ^ 1), std::make_pair(uint64_t{0}, true));

    const auto all = mesh(near, direct_rendezvous(world, with_packets(options, 1 << 10)), 2);
    EXPECT_EQ(all->table().packet_bytes, all->endpoint((world.rank() + 2) % 4).packet_bytes)
        << "the lesser of the two";
    all_four<float>(world, *all, 100, {2, 4});
    EXPECT_EQ(sent_over(*near, world.rank() ^ 1), std::make_pair(uint64_t{8}, true));

    const auto parts = direct_rendezvous(world, with_packets(options, 1 << 12));
    const auto in = message_of<float>(uint64_t(world.rank()), 100);
    std::vector<float> out(400);
    launch(*parts, Call{[&](const Group& block, const Deadline& deadline) {
      return block.agree(all_gather<float>(multiwarp_group(block, 2), parts->table(),
                                           leg_of<float>(in.data(), out.data(), 100), {0, 400}, CopyProduce{},
                                           CopyConsume{}, deadline));
    }},
           {1, 4});
    for (uint64_t at = 0; at < 400; ++at) ASSERT_EQ(out[at], value_at<float>(at / 100, at % 100)) << at;
    EXPECT_EQ(sent_over(*parts, world.rank() ^ 1), std::make_pair(uint64_t{0}, true));
  });
}

TEST(Collectives, PacketsStandBetweenThoseOfOneLink) {
  run_local(3, [](World& world) {
    const auto transport = direct_rendezvous(world, with_packets(rings(2, 2, 64), 1 << 12));
    const EndpointTable table = transport->table();
    const uint64_t n = 50;
    for (uint64_t call = 0; call < 7; ++call) {
      const auto in = message_of<float>(call, n);
      std::vector<float> got(n);
      launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
        const Leg share = share_of(leg_of<float>(in.data(), got.data(), n), group.id, group.count, 16);
        if (world.rank() == 0)
          return send_packets<LL16, float>(group, table.at(1, group.id), share, CopyProduce{}, deadline);
        if (world.rank() == 1)
          return recv_packets<LL16, float>(group, table.at(0, group.id), share, CopyConsume{}, deadline);
        return Stop::none;
      }},
             {2, 4});
      if (world.rank() == 1) {
        EXPECT_MESSAGE(got, in);
      }
      if (call % 3 == 2) all_four<int32_t>(world, *transport, 31, {2, 4});
    }
  });
}

/// Blocks of a rank's launch that wait for data that never arrives get an error, and everything works after a
/// reset.
TEST(Collectives, PacketsThatDoNotComeAreReported) {
  run_local(3, [](World& world) {
    const auto transport = direct_rendezvous(world, with_packets(rings(2, 2, 64), 1 << 12));
    all_four<float>(world, *transport, 20, {2, 4});
    std::vector<float> in(60), out(60);
    for (const bool reduces : {false, true}) {
      const auto call = [&](const Group& group, const Deadline& deadline) {
        if (world.rank() == 1) return Stop::none;
        const Leg leg = leg_of<float>(in.data(), out.data(), 60);
        if (reduces)
          return all_reduce<ReduceOp::sum, float>(group, transport->table(), leg, CopyProduce{},
                                                  CopyConsume{}, deadline);
        return all_to_all<float>(group, transport->table(), leg_of<float>(in.data(), out.data(), 20),
                                 {80, 80}, CopyProduce{}, CopyConsume{}, deadline);
      };
      if (world.rank() == 1) {
        try {
          launch(*transport, Call{call}, {2, 4});
          world.barrier();
        } catch (const RunError&) {
        }
      } else {
        EXPECT_THROW(launch(*transport, Call{call}, {2, 4}), RunError);
      }
      world.reset();
      transport->reset();
      all_four<float>(world, *transport, 20, {2, 4});
    }
  });
}

}  // namespace
}  // namespace chorale
