// These tests check what hooks receive about the data that they make or take.

#include "support.hpp"

namespace chorale {
namespace {

using namespace test;

/// Records every call.
struct NoteProduce {
  std::vector<Ctx<int>>* calls;
  template <class X>
  Vector<float> produce(const Ctx<X>& ctx) const {
    calls->push_back(ctx);
    return {};
  }
};
struct NoteConsume {
  std::vector<Ctx<int>>* calls;
  template <class X>
  void consume(const Ctx<X>& ctx, const Vector<float>&) const {
    calls->push_back(ctx);
  }
};

struct Notes {
  EndpointTable table;
  Leg message;
  std::vector<Ctx<int>>* calls;
  int* extra;

  Stop operator()(const Group& group, const Deadline& deadline) const {
    const Leg share = share_of(message, group.id, group.count);
    const Endpoint& e = table.at(1 - table.self, group.id);
    return table.self == 0 ? send_tiles<float, Direct, NoteProduce>(
                                 group, e, share, NoteProduce{calls + group.id}, deadline, extra)
                           : recv_tiles<float, Direct, NoteConsume>(
                                 group, e, share, NoteConsume{calls + group.id}, deadline, extra);
  }
};

TEST(Context, HooksAreToldWhereTheyAre) {
  run_local(2, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(2, 2, 64));
    float data[43] = {};
    int extra = 5;
    std::vector<Ctx<int>> calls[2];
    Leg message;
    message.in = message.out = data;
    message.bytes = sizeof data;
    message.elem = sizeof(float);
    message.shard = 9;
    message.rows = 6;
    message.cols = 8;
    message.in_strides = {8, 2};
    message.out_strides = {3, 6};
    for (uint64_t launches = 0; launches < 2; ++launches) {
      for (auto& of : calls) of.clear();
      launch(*transport, Notes{transport->table(), message, calls, &extra}, {2});
      // 43 elements are 11 vectors: the first group has 6, two tiles of 4 and 2; the second 5, the last with
      // 3 elements.
      ASSERT_EQ(calls[0].size(), 6u);
      ASSERT_EQ(calls[1].size(), 5u);
      for (uint32_t block = 0; block < 2; ++block) {
        for (uint32_t vector = 0; vector < calls[block].size(); ++vector) {
          const Ctx<int>& ctx = calls[block][vector];
          EXPECT_EQ(ctx.in, data);
          EXPECT_EQ(ctx.out, data);
          EXPECT_EQ(ctx.tile, vector / 4);
          EXPECT_EQ(ctx.step, launches * 2 + vector / 4);
          EXPECT_EQ(ctx.slot, vector / 4);
          EXPECT_EQ(ctx.slot_base, ctx.step * 64);
          const Endpoint e = transport->endpoint(1 - world.rank(), block);
          EXPECT_EQ(ctx.region,
                    (world.rank() == 0 ? e.send_dst : const_cast<char*>(e.recv_src)) + ctx.slot * 64);
          EXPECT_EQ(ctx.tile_rows, 2u);
          EXPECT_EQ(ctx.tile_cols, 8u);
          EXPECT_EQ(ctx.block, block);
          EXPECT_EQ(ctx.blocks, 2u);
          EXPECT_EQ(ctx.thread, 0u);
          EXPECT_EQ(ctx.threads, 1u);
          EXPECT_EQ(ctx.self, world.rank());
          EXPECT_EQ(ctx.peer, 1 - world.rank());
          EXPECT_EQ(ctx.recv_peer, 1 - world.rank());
          EXPECT_EQ(ctx.ranks, 2);
          EXPECT_EQ(ctx.shard, 9u);
          EXPECT_EQ(ctx.rows, 6u);
          EXPECT_EQ(ctx.cols, 8u);
          EXPECT_EQ(ctx.in_strides.row, 8u);
          EXPECT_EQ(ctx.in_strides.col, 2u);
          EXPECT_EQ(ctx.out_strides.row, 3u);
          EXPECT_EQ(ctx.out_strides.col, 6u);
          EXPECT_EQ(ctx.index, block * 24 + vector * 4);
          EXPECT_EQ(ctx.pos, vector % 4 * 4);
          EXPECT_EQ(ctx.count, block == 1 && vector == 4 ? 3u : 4u);
          EXPECT_EQ(ctx.extra, &extra);
        }
      }
    }
  });
}

TEST(Context, ValueHooksCountTheirOwnElements) {
  run_local(2, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 2, 96));
    float data[42] = {};
    std::vector<Ctx<int>> calls;
    Leg message;
    message.in = message.out = data;
    message.bytes = sizeof data;
    message.elem = 12;  // a row must not be cut
    message.cols = 3;
    message.signal_bytes = 48;
    launch(*transport, Notes{transport->table(), message, &calls, nullptr}, {1});
    ASSERT_EQ(calls.size(), 11u);
    for (uint32_t vector = 0; vector < calls.size(); ++vector) {
      EXPECT_EQ(calls[vector].index, vector * 4);
      EXPECT_EQ(calls[vector].pos, vector % 6 * 4);
      EXPECT_EQ(calls[vector].count, vector == 10 ? 2u : 4u);
      EXPECT_EQ(calls[vector].tile_bytes, 96u);
      EXPECT_EQ(calls[vector].tile_rows, 8u);
    }
  });
}

/// Records every call of a block hook.
struct NoteTiles {
  using block_hook = void;
  std::vector<Ctx<>>* calls;
  void consume(const Ctx<>& ctx, const Group&, TileIn) const { calls->push_back(ctx); }
};

TEST(Context, BlockHooksCountTheLegsElements) {
  run_local(2, [](World& world) {
    const auto transport = direct_rendezvous(world, rings(1, 2, 96));
    float data[42] = {};
    std::vector<Ctx<>> calls;
    Leg message;
    message.in = message.out = data;
    message.bytes = sizeof data;
    message.elem = 12;
    if (world.rank() == 0) {
      send<float>(*transport, message, 1, CopyProduce{}, {1});
      return;
    }
    recv<float>(*transport, message, 0, NoteTiles{&calls}, {1});
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[1].index, 8u);
    EXPECT_EQ(calls[0].count, 8u);
    EXPECT_EQ(calls[1].count, 6u);
  });
}

/// Records what each thread receives, in a separate list per thread.
struct NoteOfThread {
  std::vector<Ctx<>>* calls;  // by block, then by thread
  uint32_t threads;

  void note(const Ctx<>& ctx) const {
    ASSERT_LT(ctx.thread, threads);
    calls[ctx.block * threads + ctx.thread].push_back(ctx);
  }
  Vector<float> produce(const Ctx<>& ctx) const {
    note(ctx);
    return {};
  }
  void consume(const Ctx<>& ctx, const Vector<float>&) const { note(ctx); }
};

TEST(Context, HooksAreToldWhoseTheDataIsAndWhichThreadHasIt) {
  constexpr uint32_t blocks = 2, threads = 8;
  run_local(3, [&](World& world) {
    const auto transport = direct_rendezvous(world, rings(blocks, 2, 512));
    const int to = (world.rank() + 1) % 3, from = (world.rank() + 2) % 3;
    const uint64_t n = 400;
    std::vector<float> in(n), out(n);
    std::vector<Ctx<>> made[blocks * threads], taken[blocks * threads];
    sendrecv(*transport, in.data(), out.data(), n, to, from, NoteOfThread{made, threads},
             NoteOfThread{taken, threads}, {blocks, threads});
    for (const auto* calls : {made, taken}) {
      uint64_t elements = 0;
      for (uint32_t place = 0; place < blocks * threads; ++place) {
        for (const Ctx<>& ctx : calls[place]) {
          EXPECT_EQ(ctx.threads, threads);
          EXPECT_EQ(ctx.blocks, blocks);
          // Units are taken in turn.
          EXPECT_EQ(ctx.pos / 4 % threads, place % threads);
          EXPECT_EQ(ctx.self, world.rank());
          EXPECT_EQ(ctx.peer, to);
          EXPECT_EQ(ctx.recv_peer, from);
          EXPECT_EQ(ctx.ranks, 3);
          elements += ctx.count;
        }
      }
      EXPECT_EQ(elements, n);
    }
  });
}

/// Expects the right shares for each rank and each of `count` groups.
void expect_shares_of_shares(const Leg& message, uint32_t ranks, uint32_t count) {
  for (uint32_t id = 0; id < count; ++id) {
    const detail::SharesOfShards shares(message, ranks, id, count);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const Leg expected = share_of(share_of(message, rank, ranks), id, count), share = shares(int32_t(rank));
      ASSERT_EQ(share.bytes, expected.bytes) << message.bytes << " bytes, " << ranks << " ranks";
      if (share.bytes != 0) {
        ASSERT_EQ(share.begin, expected.begin);
      }
      ASSERT_EQ(share.shard, rank);
    }
  }
}

TEST(Context, SharesOfShardsAreTheSharesOfTheShards) {
  for (const uint32_t elem : {1u, 4u, 6u, 40u, 256u}) {
    for (const uint64_t tile : {0, 1, 8}) {
      for (uint64_t elements = 0; elements < 400; elements = elements * 5 / 4 + 1) {
        Leg message;
        message.begin = 7 * elem;
        message.elem = elem;
        message.tile_bytes = tile * elem;
        message.bytes = elements * elem;
        for (const uint32_t ranks : {1u, 2u, 3u, 8u}) {
          for (const uint32_t count : {1u, 2u, 5u}) expect_shares_of_shares(message, ranks, count);
        }
      }
    }
  }
}

}  // namespace
}  // namespace chorale
