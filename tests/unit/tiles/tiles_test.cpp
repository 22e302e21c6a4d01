// These tests run send_tiles, recv_tiles, sendrecv_tiles and forward_tiles between ranks that are threads.
// Every byte must arrive, whatever the size, the ring, and the number of channels and threads.

#include <algorithm>
#include <ostream>
#include <thread>

#include "support.hpp"

namespace chorale {
namespace {

using namespace test;

struct Shape {
  uint64_t bytes = 0;
  uint32_t blocks = 1, threads = 1, depth = 2;
  uint64_t slot = 4096;
  uint64_t signal_bytes = 0, tile_bytes = 0;
  RingAt ring_at = RingAt::receiver;

  friend void PrintTo(const Shape& shape, std::ostream* to) {
    *to << shape.bytes << " bytes, " << shape.blocks << " blocks of " << shape.threads << ", " << shape.depth
        << " slots of " << shape.slot << ", signals " << shape.signal_bytes << ", tiles " << shape.tile_bytes
        << (shape.ring_at == RingAt::sender ? ", rings at the sender" : "");
  }
};

/// Sends `calls` messages, all different, from rank 0 to rank 1.
void one_way(const Shape& shape, int calls = 3) {
  SCOPED_TRACE(testing::PrintToString(shape));
  run_local(2, [&](World& world) {
    RendezvousOptions options = rings(shape.blocks, shape.depth, shape.slot);
    options.ring_at = shape.ring_at;
    const auto transport = direct_rendezvous(world, options);
    const LaunchConfig config{shape.blocks, shape.threads};
    for (int call = 0; call < calls; ++call) {
      const std::vector<uint8_t> sent = message_of<uint8_t>(uint64_t(call), shape.bytes);
      Leg leg;
      leg.bytes = shape.bytes;
      leg.tile_bytes = shape.tile_bytes;
      leg.signal_bytes = shape.signal_bytes;
      if (world.rank() == 0) {
        leg.in = sent.data();
        send<uint8_t>(*transport, leg, 1, CopyProduce{}, config);
      } else {
        std::vector<uint8_t> got(shape.bytes + 1, 0xee);
        leg.out = got.data();
        leg.signal_bytes = 0;
        recv<uint8_t>(*transport, leg, 0, CopyConsume{}, config);
        EXPECT_MESSAGE(got, sent);
        EXPECT_EQ(got.back(), 0xee) << "written behind the message";
      }
    }
  });
}

TEST(Tiles, EverySize) {
  for (const uint64_t bytes : {0, 1, 15, 16, 17, 255, 4095, 4096, 4097, 8192, 8193, 65536 + 3, 1 << 20}) {
    one_way({.bytes = bytes, .blocks = 2});
    one_way({.bytes = bytes, .blocks = 2, .threads = 8}, bytes > 8192 ? 1 : 3);
    one_way({.bytes = bytes, .blocks = 2, .ring_at = RingAt::sender});
  }
}

TEST(Tiles, LongMessages) {
  one_way({.bytes = 4 << 20, .blocks = 4, .slot = 32 << 10}, 2);
  one_way({.bytes = 64 << 20, .blocks = 8, .slot = 256 << 10}, 1);
  one_way({.bytes = 4 << 20, .blocks = 4, .threads = 8, .slot = 32 << 10}, 1);
}

TEST(Tiles, EveryNumberOfChannels) {
  for (uint32_t blocks = 1; blocks <= 32; ++blocks) {
    one_way({.bytes = 32 * 700 + 5, .blocks = blocks, .slot = 256}, 2);
  }
  for (const uint32_t blocks : {1u, 3u, 4u, 8u, 12u, 16u, 20u, 24u, 28u, 32u}) {
    one_way({.bytes = 10000, .blocks = blocks, .threads = 8, .slot = 256}, 2);
  }
}

/// Each part of a block sends or receives over its own channel.
struct InParts {
  EndpointTable table;
  Leg message;
  uint32_t parts;
  Stop operator()(const Group& block, const Deadline& deadline) const {
    const Group group = multiwarp_group(block, block.size / parts);
    const Leg share = share_of(message, group.id, group.count);
    const Endpoint& e = table.at(1 - table.self, group.id);
    return block.agree(table.self == 0 ? send_tiles<uint8_t>(group, e, share, CopyProduce{}, deadline)
                                       : recv_tiles<uint8_t>(group, e, share, CopyConsume{}, deadline));
  }
};

TEST(Tiles, PartsOfABlockHaveChannelsOfTheirOwn) {
  for (const uint32_t parts : {2u, 4u, 8u}) {
    run_local(2, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(3 * parts, 2, 128));
      for (uint64_t call = 0; call < 3; ++call) {
        const auto sent = message_of<uint8_t>(call, 30001);
        std::vector<uint8_t> got(sent.size());
        Leg leg;
        leg.in = sent.data();
        leg.out = got.data();
        leg.bytes = sent.size();
        launch(*transport, InParts{transport->table(), leg, parts}, {3, 8});
        if (world.rank() == 1) {
          EXPECT_MESSAGE(got, sent);
        }
      }
    });
  }
}

TEST(Tiles, EveryDepth) {
  for (uint32_t depth = 1; depth <= 8; ++depth) {
    one_way({.bytes = 9 * 256 + 9, .depth = depth, .slot = 256}, 4);
    one_way({.bytes = 9 * 256 + 9, .threads = 8, .depth = depth, .slot = 256}, 2);
    one_way({.bytes = 9 * 256 + 9, .depth = depth, .slot = 256, .ring_at = RingAt::sender}, 4);
  }
}

TEST(Tiles, SignalsAndTilesOfAnySize) {
  for (const uint64_t signal_bytes :
       {uint64_t{1}, uint64_t{16}, uint64_t{100}, uint64_t{256}, uint64_t{5000}, ~uint64_t{0}}) {
    for (const uint64_t tile_bytes : {0, 16, 48, 100, 1000, 1024}) {
      for (const uint32_t threads : {1u, 8u}) {
        one_way({.bytes = 5000,
                 .blocks = 2,
                 .threads = threads,
                 .slot = 1024,
                 .signal_bytes = signal_bytes,
                 .tile_bytes = tile_bytes},
                2);
      }
    }
  }
}

TEST(Tiles, AnyAlignment) {
  run_local(2, [&](World& world) {
    const auto transport = direct_rendezvous(world, rings(2, 2, 512));
    for (uint32_t shift = 0; shift < 16; ++shift) {
      const uint64_t n = 3000 + shift;
      const std::vector<uint8_t> sent = message_of<uint8_t>(shift, n);
      if (world.rank() == 0) {
        std::vector<uint8_t> moved(n + 32);
        std::copy(sent.begin(), sent.end(), moved.begin() + shift);
        send(*transport, moved.data() + shift, n, 1, {}, {2, shift % 2 ? 8u : 1u});
      } else {
        std::vector<uint8_t> room(n + 32, 7);
        recv(*transport, room.data() + (15 - shift), n, 0, {}, {2});
        const std::vector<uint8_t> got(room.begin() + (15 - shift), room.end());
        EXPECT_MESSAGE(got, sent);
        EXPECT_EQ(got[n], 7);
      }
    }
  });
}

TEST(Tiles, ManyCallsOfDifferentSizesBackToBack) {
  run_local(2, [&](World& world) {
    const auto transport = direct_rendezvous(world, rings(3, 4, 128));
    for (uint64_t call = 0; call < 200; ++call) {
      const uint64_t n = mix(call) % 3000;
      const std::vector<uint32_t> sent = message_of<uint32_t>(call, n);
      if (world.rank() == 0) {
        send(*transport, sent.data(), n, 1, {}, {3});
      } else {
        std::vector<uint32_t> got(n);
        recv(*transport, got.data(), n, 0, {}, {3});
        EXPECT_MESSAGE(got, sent) << "call " << call;
      }
    }
  });
}

/// Runs a kernel in which every group has a different share.
struct Uneven {
  EndpointTable table;
  Leg message;
  const uint64_t* bounds;  // by group, and the end
  bool sends;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    Leg share = message;
    share.begin = bounds[group.id];
    share.bytes = bounds[group.id + 1] - share.begin;
    const Endpoint& e = table.at(1 - table.self, group.id);
    return sends ? send_tiles<char>(group, e, share, CopyProduce{}, deadline)
                 : recv_tiles<char>(group, e, share, CopyConsume{}, deadline);
  }
};

TEST(Tiles, UnevenShares) {
  const uint64_t bounds[] = {0, 0, 5000, 5001, 5017, 20000};
  run_local(2, [&](World& world) {
    const auto transport = direct_rendezvous(world, rings(5, 2, 512));
    for (uint64_t call = 0; call < 5; ++call) {
      const std::vector<char> sent = message_of<char>(call, 20000);
      std::vector<char> got(20000);
      Leg message;
      message.in = sent.data();
      message.out = got.data();
      launch(*transport, Uneven{transport->table(), message, bounds, world.rank() == 0},
             {5, call % 2 ? 8u : 1u});
      if (world.rank() == 1) {
        EXPECT_MESSAGE(got, sent);
      }
    }
  });
}

TEST(Tiles, SkewedReplay) {
  // The sender makes as many calls as the ring holds before the receiver makes its first one. Then both
  // continue together: 12 calls over 4 slots.
  for (const uint32_t threads : {1u, 8u}) {
    run_local(2, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(1, 4, 256));
      for (uint64_t call = 0; call < 12; ++call) {
        const std::vector<char> sent = message_of<char>(call, 256);
        if (world.rank() == 0) {
          send(*transport, sent.data(), 256, 1, {}, {1, threads});
          if (call == 3) world.barrier();
        } else {
          if (call == 0) world.barrier();
          std::vector<char> got(256);
          recv(*transport, got.data(), 256, 0, {}, {1, threads});
          EXPECT_MESSAGE(got, sent) << "call " << call;
        }
      }
    });
  }
}

TEST(Tiles, BothWaysByTurns) {
  for (const uint32_t threads : {1u, 8u}) {
    for (const uint32_t depth : {2u, 3u, 8u}) {
      run_local(3, [&](World& world) {
        const auto transport = direct_rendezvous(world, rings(2, depth, 256));
        const int right = (world.rank() + 1) % 3, left = (world.rank() + 2) % 3;
        for (uint64_t call = 0; call < 10; ++call) {
          const uint64_t n = mix(call) % 5000;
          const auto sent = message_of<char>(call * 3 + uint64_t(world.rank()), n);
          const auto expected = message_of<char>(call * 3 + uint64_t(left), n);
          std::vector<char> got(n);
          sendrecv(*transport, sent.data(), got.data(), n, right, left, {}, {}, {2, threads});
          EXPECT_MESSAGE(got, expected);
        }
      });
    }
  }
}

TEST(Tiles, ToOneself) {
  run_local(1, [&](World& world) {
    const auto transport = direct_rendezvous(world, rings(2, 2, 256));
    const auto sent = message_of<char>(1, 5000);
    std::vector<char> got(5000);
    sendrecv(*transport, sent.data(), got.data(), 5000, 0, -1, {}, {}, {2, 4});
    EXPECT_MESSAGE(got, sent);
  });
}

/// Half of the groups send, half receive.
struct Roles {
  EndpointTable table;
  Leg message;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Split role = group.split_interleaved(2);
    const Leg share = share_of(message, role.group.id, role.group.count);
    const Endpoint& e = table.at(1 - table.self, role.group.id);
    return role.part == 0 ? send_tiles<char>(role.group, e, share, CopyProduce{}, deadline)
                          : recv_tiles<char>(role.group, e, share, CopyConsume{}, deadline);
  }
};

TEST(Tiles, BothWaysByRoles) {
  for (const uint32_t depth : {1u, 2u}) {
    run_local(2, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(3, depth, 256));
      const auto sent = message_of<char>(uint64_t(world.rank()), 20000);
      const auto expected = message_of<char>(uint64_t(1 - world.rank()), 20000);
      std::vector<char> got(20000);
      Leg message;
      message.in = sent.data();
      message.out = got.data();
      message.bytes = 20000;
      launch(*transport, Roles{transport->table(), message}, {6, 2});
      EXPECT_MESSAGE(got, expected);
    });
  }
}

/// Rank 0 sends, the others forward, and the last one keeps.
struct Chain {
  EndpointTable table;
  Leg message;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Leg share = share_of(message, group.id, group.count);
    const int self = table.self;
    if (self == 0) return send_tiles<char>(group, table.at(1, group.id), share, CopyProduce{}, deadline);
    const Endpoint& from = table.at(self - 1, group.id);
    if (self + 1 == table.ranks) return recv_tiles<char>(group, from, share, CopyConsume{}, deadline);
    return forward_tiles<char>(group, from, table.at(self + 1, group.id), share, CopyConsume{}, deadline);
  }
};

TEST(Tiles, ForwardChain) {
  for (const uint32_t threads : {1u, 8u}) {
    run_local(4, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(2, 2, 512));
      for (const uint64_t n : {1, 512, 5000, 30001}) {
        const auto sent = message_of<char>(n, n);
        std::vector<char> got(n);
        Leg message;
        message.in = sent.data();
        // Rank 1 only forwards.
        message.out = world.rank() == 1 ? nullptr : got.data();
        message.bytes = n;
        message.signal_bytes = n % 2 ? 128 : 0;
        launch(*transport, Chain{transport->table(), message}, {2, threads});
        if (world.rank() >= 2) {
          EXPECT_MESSAGE(got, sent);
        }
      }
    });
  }
}

/// Does the same as Chain, but every rank adds its own data. The sum arrives at the last rank.
struct ReducingChain {
  EndpointTable table;
  Leg message;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Leg share = share_of(message, group.id, group.count);
    const int self = table.self;
    if (self == 0) return send_tiles<float>(group, table.at(1, group.id), share, CopyProduce{}, deadline);
    const Endpoint& from = table.at(self - 1, group.id);
    if (self + 1 == table.ranks) {
      return recv_tiles<float>(group, from, share, AccumulateConsume<ReduceOp::sum, float>{}, deadline);
    }
    return forward_tiles<float>(group, from, table.at(self + 1, group.id), share,
                                AccumulateForward<ReduceOp::sum, float>{}, deadline);
  }
};

TEST(Tiles, ForwardThatReduces) {
  for (const uint32_t threads : {1u, 8u}) {
    run_local(4, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(2, 2, 512));
      const uint64_t n = 3001;
      auto own = message_of<float>(uint64_t(world.rank()), n);
      Leg message;
      message.in = message.out = own.data();
      if (world.rank() != 3) message.out = nullptr;
      message.bytes = n * sizeof(float);
      message.elem = sizeof(float);
      launch(*transport, ReducingChain{transport->table(), message}, {2, threads});
      if (world.rank() != 3) return;
      std::vector<float> expected(n);
      for (uint64_t rank = 0; rank < 4; ++rank) {
        for (uint64_t index = 0; index < n; ++index) expected[index] += value_at<float>(rank, index);
      }
      EXPECT_MESSAGE(own, expected);
    });
  }
}

TEST(Tiles, HundredReplaysWithNewData) {
  // One kernel object is launched again and again, as a graph replays it. Only the data changes.
  run_local(2, [&](World& world) {
    const auto transport = direct_rendezvous(world, rings(2, 3, 256));
    const uint64_t n = 2000;
    std::vector<char> in(n), out(n);
    Leg leg;
    leg.in = in.data();
    leg.out = out.data();
    leg.bytes = n;
    const SendRecvKernel<char, CopyProduce, CopyConsume> kernel{
        transport->table(), leg, leg, 1 - world.rank(), 1 - world.rank(), {}, {}};
    for (uint64_t replay = 0; replay < 100; ++replay) {
      const auto sent = message_of<char>(replay * 2 + uint64_t(world.rank()), n);
      std::copy(sent.begin(), sent.end(), in.begin());
      launch(*transport, kernel, {2, replay % 2 ? 8u : 1u});
      const auto expected = message_of<char>(replay * 2 + uint64_t(1 - world.rank()), n);
      ASSERT_EQ(first_difference(out.data(), expected.data(), n), n) << "replay " << replay;
    }
  });
}

}  // namespace
}  // namespace chorale
