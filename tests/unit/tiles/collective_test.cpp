// These tests run device collectives over every kind of transport on the CPU, in order and under seeds, and
// compare with the expected results, bit for bit.

#include <fmt/format.h>

#include <atomic>

#include "collectives.hpp"

namespace chorale {
namespace {

using namespace test;

TEST(Collectives, OverEveryTransport) {
  for (const Kind kind : all_kinds) {
    for (const uint32_t threads : {1u, 8u}) {
      for (const uint64_t n : {0, 1, 7, 300, 2500}) {
        SCOPED_TRACE(fmt::format("kind {}, {} threads, {} elements", int(kind), threads, n));
        run_local(4, [&](World& world) {
          const auto transport = make(world, kind, rings(3, 2, 512));
          all_four<float>(world, *transport, n, {3, threads});
        });
      }
    }
  }
}

TEST(Collectives, OfOtherTypesDepthsAndWorlds) {
  for (const int ranks : {1, 2, 3, 8}) {
    run_local(ranks, [&](World& world) {
      const auto transport = make(world, Kind::direct, rings(2, 3, 256));
      all_four<bf16>(world, *transport, 555, {2});
      all_four<uint8_t>(world, *transport, 1001, {2, 4});
    });
  }
}

TEST(Collectives, SumsAreMadeInRankOrder) {
  // The floats have another sum in any other order.
  const std::vector<float> values = {1e8f, 3.0f, -1e8f, 0.7f};
  const float in_order = ((values[0] + values[1]) + values[2]) + values[3];
  run_local(4, [&](World& world) {
    const auto sums = [&](Transport& transport, uint64_t n) {
      const EndpointTable table = transport.table();
      const std::vector<float> in(n * 4, values[size_t(world.rank())]);
      std::vector<float> out(n * 4), shard(n);
      launch(
          transport, Call{[&](const Group& group, const Deadline& deadline) {
            const Stop stop =
                reduce_scatter<ReduceOp::sum, float>(group, table, leg_of<float>(in.data(), shard.data(), n),
                                                     {n * 4, 0}, CopyProduce{}, CopyConsume{}, deadline);
            if (stop != Stop::none) return stop;
            return all_reduce<ReduceOp::sum, float>(group, table, leg_of<float>(in.data(), out.data(), n * 4),
                                                    CopyProduce{}, CopyConsume{}, deadline);
          }},
          {2});
      EXPECT_EQ(shard, std::vector<float>(n, in_order));
      EXPECT_EQ(out, std::vector<float>(n * 4, in_order));
    };
    sums(*make(world, Kind::mixed, rings(2, 2, 256)), 101);
    // The sums also go as packets, in one exchange and in two.
    const auto packets = direct_rendezvous(world, with_packets(rings(2, 2, 256), 1 << 15));
    for (const uint64_t n : {101, 2000}) sums(*packets, n);
    EXPECT_EQ(sent_over(*packets, 0), std::make_pair(uint64_t{4}, false));
  });
}

/// Checks that hooks receive the tile's position in the stream, in every thread, whatever the others have
/// done.
struct Place {
  uint64_t launch, tiles, slot;
  char* ring;  ///< the ring of this rank's link to itself
  std::atomic<int>* wrong;

  void look(const Ctx<>& ctx) const {
    const uint64_t step = launch * tiles + ctx.tile;
    if (ctx.step != step || ctx.slot != step % 2 || ctx.slot_base != step * slot ||
        ctx.region != ring + step % 2 * slot)
      ++*wrong;
  }
};
struct PlaceProduce {
  Place place;
  Vector<float> produce(const Ctx<>& ctx) const {
    place.look(ctx);
    return load_elements<float>(ctx.in, ctx.index, ctx.count);
  }
};
struct PlaceConsume {
  Place place;
  void consume(const Ctx<>& ctx, const Vector<float>& values) const {
    place.look(ctx);
    store_elements<float>(ctx.out, ctx.index, values, ctx.count);
  }
};

/// Holds a value that depends on the order in which the ranks' values arrive.
struct InOrder {
  template <class X>
  void consume(const Ctx<X>& ctx, const Vector<uint32_t>& values) const {
    uint32_t* const out = static_cast<uint32_t*>(ctx.out) + ctx.index;
    for (uint32_t item = 0; item < ctx.count; ++item) out[item] = 3 * out[item] + values.item[item];
  }
};

TEST(Collectives, ShardsThatComeToOnePlaceComeInOrder) {
  const auto value = [](uint64_t rank, uint64_t at) { return uint32_t(1000003 * rank + 17 * at); };
  for (const uint64_t packet_bytes : {0, 1 << 12}) {
    run_local(4, [&](World& world) {
      const auto transport = direct_rendezvous(world, with_packets(rings(2, 2, 64), packet_bytes));
      const uint64_t n = 200, self = uint64_t(world.rank());
      std::vector<uint32_t> in(4 * n), gathered(n), exchanged(n), expected(n), of_shards(n);
      for (uint64_t at = 0; at < in.size(); ++at) in[at] = value(self, at);
      for (uint64_t step = 0; step < 4; ++step) {
        const uint64_t peer = (self + 4 - step) % 4;
        for (uint64_t at = 0; at < n; ++at) {
          expected[at] = 3 * expected[at] + value(peer, at);
          of_shards[at] = 3 * of_shards[at] + value(peer, self * n + at);
        }
      }
      const auto gather = [&](const Group& group, const Deadline& deadline) {
        return all_gather<uint32_t>(group, transport->table(),
                                    leg_of<uint32_t>(in.data(), gathered.data(), n), {}, CopyProduce{},
                                    InOrder{}, deadline);
      };
      const auto exchange = [&](const Group& group, const Deadline& deadline) {
        return all_to_all<uint32_t>(group, transport->table(),
                                    leg_of<uint32_t>(in.data(), exchanged.data(), n), {4 * n, 0},
                                    CopyProduce{}, InOrder{}, deadline);
      };
      launch(*transport, Call{gather}, {2, 8});
      launch(*transport, Call{exchange}, {2, 8});
      EXPECT_EQ(sent_over(*transport, (world.rank() + 1) % 4).second, packet_bytes == 0);
      EXPECT_MESSAGE(gathered, expected);
      EXPECT_MESSAGE(exchanged, of_shards);
    });
  }
}

/// Does an all_gather() of two messages at once, each by the groups of one part.
struct TwoGathers {
  EndpointTable table;
  Leg first, second;
  uint64_t n;
  uint32_t form;

  Stop operator()(const Group& block, const Deadline& deadline) const {
    const Group group = form < 3 ? block : multiwarp_group(block, block.size / 2);
    constexpr uint32_t weights[] = {2, 1};
    const Split part = form % 3 == 0   ? group.split(2)
                       : form % 3 == 1 ? group.split_interleaved(2)
                                       : group.split_weighted(weights, 2);
    return block.agree(all_gather<uint32_t>(part.group, table.from_channel(group.id - part.group.id),
                                            part.part == 0 ? first : second, {0, n * sizeof(uint32_t)},
                                            CopyProduce{}, CopyConsume{}, deadline));
  }
};

TEST(Collectives, PartsOfASplitAtOnceInAThousandOrders) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const uint32_t form = uint32_t(seed % 4);  // parts of blocks, too, which a split by halves keeps together
    const uint64_t n = 1 + mix(seed) % 60;
    run_local(3,
              [&](World& world) {
                const RendezvousOptions options = rings(8, 2, 32);
                const Kind kind = seed % 3 == 0 ? Kind::mixed : Kind::direct;
                const auto transport = make(
                    world, kind, kind == Kind::direct ? with_packets(options, seed % 2 ? 256 : 0) : options);
                const auto of = [&](int message, int rank) {
                  return message_of<uint32_t>(seed * 100 + uint64_t(message * 10 + rank), n);
                };
                for (int call = 0; call < 2; ++call) {
                  const auto first = of(2 * call, world.rank()), second = of(2 * call + 1, world.rank());
                  std::vector<uint32_t> firsts(3 * n), seconds(3 * n);
                  launch(*transport,
                         TwoGathers{transport->table(), leg_of<uint32_t>(first.data(), firsts.data(), n),
                                    leg_of<uint32_t>(second.data(), seconds.data(), n), n, form},
                         {form < 3 ? 2 + uint32_t(mix(seed + 1) % 4) : 4, form < 3 && seed % 5 ? 1u : 8u});
                  for (int rank = 0; rank < 3; ++rank) {
                    const auto one = of(2 * call, rank), two = of(2 * call + 1, rank);
                    ASSERT_EQ(first_difference(&firsts[uint64_t(rank) * n], one.data(), n), n) << seed;
                    ASSERT_EQ(first_difference(&seconds[uint64_t(rank) * n], two.data(), n), n) << seed;
                  }
                }
              },
              {.seed = seed});
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(Collectives, HooksAreToldWhereTheyAreInAHundredOrders) {
  constexpr uint64_t slot = 64, tiles = 3, n = tiles * slot / sizeof(float), ranks = 2;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::atomic<int> gathered{0}, scattered{0};
    run_local(ranks,
              [&](World& world) {
                const std::vector<float> in(n * ranks, 1.0f);
                std::vector<float> out(n * ranks);
                for (const bool gathers : {true, false}) {
                  const auto transport = direct_rendezvous(world, rings(1, 2, slot));
                  const EndpointTable table = transport->table();
                  Place place{0, tiles, slot, transport->endpoint(world.rank()).send_dst, nullptr};
                  place.wrong = gathers ? &gathered : &scattered;
                  const Leg leg = leg_of<float>(in.data(), out.data(), n);
                  for (; place.launch < 2; ++place.launch) {
                    launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
                      if (gathers)
                        return all_gather<float>(group, table, leg, {0, n * sizeof(float)},
                                                 PlaceProduce{place}, CopyConsume{}, deadline);
                      return reduce_scatter<ReduceOp::sum, float>(group, table, leg, {n * sizeof(float), 0},
                                                                  CopyProduce{}, PlaceConsume{place},
                                                                  deadline);
                    }},
                           {1, 4});
                  }
                }
              },
              {.seed = seed});
    ASSERT_EQ(gathered, 0) << "seed " << seed;
    ASSERT_EQ(scattered, 0) << "seed " << seed;
  }
}

TEST(Mixed, EightRanksInTwoDomains) {
  run_local(8, [](World& world) {
    const auto transport = make(world, Kind::mixed, rings(2, 2, 512), 4);
    for (int peer = 0; peer < 8; ++peer) {
      EXPECT_EQ(transport->link_kind(peer), peer == world.rank()           ? LinkKind::self
                                            : peer / 4 == world.rank() / 4 ? LinkKind::direct
                                                                           : LinkKind::port);
      EXPECT_EQ(transport->table().kind(peer), transport->link_kind(peer));
    }
    all_four<int32_t>(world, *transport, 700, {2});
    all_four<int32_t>(world, *transport, 700, {2, 8});
  });
}

TEST(Mixed, MeshesOfOtherTransportsAreRefusedOnAllRanks) {
  run_local(4, [](World& world) {
    const std::shared_ptr<Transport> one = direct_rendezvous(world, rings(2, 2, 512));
    const std::shared_ptr<Transport> other = direct_rendezvous(world, rings(2, 4, 512));
    const std::shared_ptr<Transport> both = mesh(one, other, 2);
    EXPECT_EQ(other->number(), one->number() + 1);
    EXPECT_EQ(both->number(), one->number() + 2);
    const bool last = world.rank() == 3;
    const std::string said =
        message_of_error<RunError>([&] { last ? mesh(other, one, 2) : mesh(one, other, 2); });
    EXPECT_EQ(said, fmt::format(
                        "the ranks make different meshes: rank 0 domains of 2 ranks, transport {0} "
                        "within and {1} between them; rank 3 domains of 2 ranks, transport {1} within "
                        "and {0} between them; transports are numbered in the order in which they were made",
                        one->number(), other->number()));
    EXPECT_NE(message_of_error<RunError>([&] { mesh(last ? both : one, other, 2); }), "");
    EXPECT_EQ(mesh(both, other, 2)->link_kind(0), both->link_kind(0));
  });
}

TEST(Mixed, MeshesThatCannotBeAreRefused) {
  run_local(2, [](World& world) {
    const std::shared_ptr<Transport> one = direct_rendezvous(world, rings(2, 2, 512));
    const std::shared_ptr<Transport> other = direct_rendezvous(world, rings(2, 2, 256));
    EXPECT_THROW(mesh(one, other, 1), UsageError);
    EXPECT_THROW(mesh(one, one, 0), UsageError);
    EXPECT_EQ(message_of_error<UsageError>([&] { mesh(one, nullptr, 1); }),
              "a mesh needs two transports, but inter is null");
    EXPECT_EQ(message_of_error<UsageError>([&] { mesh(nullptr, one, 1); }),
              "a mesh needs two transports, but intra is null");
    const std::string said = message_of_error<RunError>([&] { mesh(one, one, 1 + world.rank()); });
    EXPECT_NE(said.find("rank 0 domains of 1 ranks, "), std::string::npos) << said;
    EXPECT_NE(said.find("rank 1 domains of 2 ranks, "), std::string::npos) << said;
    // The lesser of the two limits holds.
    const auto both = mesh(one, direct_rendezvous(world, rings(1, 3, 512)), 1);
    EXPECT_EQ(both->max_channels(), 1u);
    EXPECT_EQ(both->depth(), 2u);
    EXPECT_THROW(check_transfer(*both, 10, 1, 2), UsageError);
  });
}

/// The links of the parts are those of the mesh.
TEST(Mixed, PartsAreNotUsedAfterAStopOfTheirMesh) {
  run_local(2, [](World& world) {
    const std::shared_ptr<Transport> near = direct_rendezvous(world, rings(1, 2, 256));
    const std::shared_ptr<Transport> far = direct_rendezvous(world, rings(1, 2, 256));
    const auto both = mesh(near, far, 1);
    const int peer = 1 - world.rank();
    char byte = 0;
    EXPECT_THROW(launch(*both, Call{[&](const Group& group, const Deadline& deadline) {
                   if (world.rank() == 0) world.abort("on purpose");
                   return RecvKernel<char, CopyConsume>{
                       both->table(), leg_of<char>(nullptr, &byte, 1), peer, {}}(group, deadline);
                 }},
                        {1}),
                 RunError);
    world.reset();
    const auto exchange = [&](Transport& over) {
      char in = 5, out = 0;
      sendrecv(over, &in, &out, 1, peer, -1, {}, {}, {1});
      return out;
    };
    for (Transport* const part : {near.get(), far.get()}) EXPECT_THROW(exchange(*part), UsageError);
    both->reset();
    for (Transport* const whole : {near.get(), far.get(), both.get()}) EXPECT_EQ(exchange(*whole), 5);
  });
}

TEST(Mixed, CollectivesRefuseRingsOfOneSlotWhereverTheyAre) {
  const std::string said = message_of_error<std::logic_error>([] {
    run_local(2, [](World& world) {
      const std::shared_ptr<Transport> near = direct_rendezvous(world, rings(1, 2, 256));
      const auto both = mesh(near, direct_rendezvous(world, rings(1, 1, 256)), 1);
      std::vector<float> in(300), out(600);
      launch(*both, Call{[&](const Group& group, const Deadline& deadline) {
        return all_gather<float>(group, both->table(), leg_of<float>(in.data(), out.data(), 300), {0, 1200},
                                 CopyProduce{}, CopyConsume{}, deadline);
      }},
             {1});
    });
  });
  EXPECT_NE(said.find("a collective needs rings of at least two slots"), std::string::npos) << said;
}

TEST(Port, WhatCannotBeIsRefused) {
  run_local(1,
            [](World& world) {
              EXPECT_THROW(port_rendezvous(world, rings(1, 1, 16), ProxyKind::copy_engine), UsageError);
              RendezvousOptions packets = rings(1, 1, 16);
              packets.packet_bytes = 16;
              EXPECT_THROW(port_rendezvous(world, packets, ProxyKind::shared_memory), UsageError);
            },
            {.seed = 1});
}

TEST(Port, SendsOverAProxyAndAfterAReset) {
  run_local(2, [&](World& world) {
    const auto transport = port_rendezvous(world, rings(2, 3, 512), ProxyKind::shared_memory);
    const auto exchange = [&](uint64_t message) {
      const auto sent = message_of<char>(message * 2 + uint64_t(world.rank()), 9999);
      const auto expected = message_of<char>(message * 2 + uint64_t(1 - world.rank()), 9999);
      std::vector<char> got(9999);
      sendrecv(*transport, sent.data(), got.data(), 9999, 1 - world.rank(), -1, {}, {},
               {2, message % 2 ? 4u : 1u});
      EXPECT_MESSAGE(got, expected);
    };
    for (uint64_t message = 0; message < 5; ++message) exchange(message);
    // One rank receives what no rank sends.
    std::vector<char> room(3000);
    if (world.rank() == 0) {
      EXPECT_THROW(recv(*transport, room.data(), room.size(), 1, {}, {2}), RunError);
    } else {
      EXPECT_THROW(sendrecv(*transport, room.data(), room.data(), room.size(), 0, -1, {}, {}, {2}), RunError);
    }
    world.reset();
    transport->reset();
    for (uint64_t message = 5; message < 9; ++message) exchange(message);
  });
}

TEST(Seeds, CollectivesAreRightInAThousandOrders) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    run_local(4,
              [&](World& world) {
                const Kind kind = seed % 3 == 0 ? Kind::mixed : seed % 3 == 1 ? Kind::direct : Kind::port;
                // Packets can hold what some of the calls send.
                const uint64_t packets = kind == Kind::direct && seed % 2 == 0 ? 48 : 0;
                const auto transport = make(world, kind, with_packets(rings(2, 2, 32), packets));
                all_four<uint32_t>(world, *transport, 1 + mix(seed) % 40, {2, seed % 5 == 0 ? 2u : 1u});
              },
              {.seed = seed});
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

/// Tests hooks in collectives. One sends twice the value and counts its calls; another adds the shard's
/// number.
struct TwiceProduce {
  std::atomic<uint64_t>* asked;
  template <class X>
  Vector<int32_t> produce(const Ctx<X>& ctx) const {
    *asked += ctx.count;
    Vector<int32_t> values = load_elements<int32_t>(ctx.in, ctx.index, ctx.count);
    for (int32_t& value : values.item) value *= 2;
    return values;
  }
};
struct AddShard {
  template <class X>
  void consume(const Ctx<X>& ctx, Vector<int32_t> values) const {
    for (int32_t& value : values.item) value += int32_t(1000 * ctx.shard);
    store_elements<int32_t>(ctx.out, ctx.index, values, ctx.count);
  }
};
/// Does the same as TwiceProduce, by tiles.
struct TwiceTile {
  using block_hook = void;
  std::atomic<uint64_t>* asked;
  template <class X>
  void produce(const Ctx<X>& ctx, const Group& group, TileOut tile) const {
    for (uint64_t item = group.rank; item < tile.bytes / 4; item += group.size) {
      ++*asked;
      reinterpret_cast<int32_t*>(tile.data)[item] = 2 * static_cast<const int32_t*>(ctx.in)[ctx.index + item];
    }
  }
};
struct AddShardTile {
  using block_hook = void;
  template <class X>
  void consume(const Ctx<X>& ctx, const Group& group, TileIn tile) const {
    for (uint64_t item = group.rank; item < tile.bytes / 4; item += group.size) {
      static_cast<int32_t*>(ctx.out)[ctx.index + item] =
          reinterpret_cast<const int32_t*>(tile.data)[item] + int32_t(1000 * ctx.shard);
    }
  }
};

template <class Produce, class Consume>
void with_hooks(World& world, Transport& transport, uint32_t threads) {
  const uint64_t n = 403, ranks = uint64_t(world.ranks()), self = uint64_t(world.rank());
  const EndpointTable table = transport.table();
  const Shards shards{n * 4, n * 4};
  const LaunchConfig config{2, threads};
  const auto in = message_of<int32_t>(self, n * ranks);
  std::vector<int32_t> out(n * ranks), expected(n * ranks);
  std::atomic<uint64_t> asked{0};
  const Produce produce{{&asked}};

  launch(transport, Call{[&](const Group& group, const Deadline& deadline) {
           return all_gather<int32_t>(group, table, leg_of<int32_t>(in.data(), out.data(), n), shards,
                                      produce, Consume{}, deadline);
         }},
         config);
  for (uint64_t at = 0; at < n * ranks; ++at) {
    expected[at] = 2 * value_at<int32_t>(at / n, at % n) + int32_t(1000 * (at / n));
  }
  EXPECT_MESSAGE(out, expected) << "all_gather";
  EXPECT_EQ(asked, n) << "once for each element";

  launch(transport, Call{[&](const Group& group, const Deadline& deadline) {
           return all_to_all<int32_t>(group, table, leg_of<int32_t>(in.data(), out.data(), n), shards,
                                      produce, Consume{}, deadline);
         }},
         config);
  for (uint64_t at = 0; at < n * ranks; ++at) {
    expected[at] = 2 * value_at<int32_t>(at / n, self * n + at % n) + int32_t(1000 * (at / n));
  }
  EXPECT_MESSAGE(out, expected) << "all_to_all";

  const auto sum = [&](uint64_t at) {
    int32_t value = 0;
    for (uint64_t rank = 0; rank < ranks; ++rank) value += 2 * value_at<int32_t>(rank, at);
    return value;
  };
  launch(transport, Call{[&](const Group& group, const Deadline& deadline) {
           return reduce_scatter<ReduceOp::sum, int32_t>(
               group, table, leg_of<int32_t>(in.data(), out.data(), n), shards, produce, Consume{}, deadline);
         }},
         config);
  for (uint64_t at = 0; at < n; ++at) EXPECT_EQ(out[at], sum(self * n + at) + int32_t(1000 * self)) << at;

  launch(transport, Call{[&](const Group& group, const Deadline& deadline) {
           return all_reduce<ReduceOp::sum, int32_t>(
               group, table, leg_of<int32_t>(in.data(), out.data(), n * ranks), produce, Consume{}, deadline);
         }},
         config);
  for (uint64_t at = 0; at < n * ranks; ++at) {
    Leg whole = leg_of<int32_t>(nullptr, nullptr, n * ranks);
    whole.elem = 4;
    uint64_t shard = 0;
    while (at * 4 >= share_of(whole, uint32_t(shard), uint32_t(ranks)).begin +
                         share_of(whole, uint32_t(shard), uint32_t(ranks)).bytes) {
      ++shard;
    }
    ASSERT_EQ(out[at], sum(at) + int32_t(1000 * shard)) << at;
  }
}

/// These hooks look up each row that they make or take. There is nothing to look up after the last row.
struct MakeRow {
  using block_hook = void;
  const std::vector<float>* of_row;
  template <class X>
  void produce(const Ctx<X>& ctx, const Group& group, TileOut tile) const {
    const float value = of_row->at(ctx.index / ctx.cols);
    float* const to = reinterpret_cast<float*>(tile.data);
    for (uint64_t item = group.rank; item < tile.bytes / sizeof(float); item += group.size) to[item] = value;
  }
};
struct TakeRow {
  using block_hook = void;
  std::vector<float>* of_row;
  template <class X>
  void consume(const Ctx<X>& ctx, const Group& group, TileIn tile) const {
    float& value = of_row->at(ctx.index / ctx.cols);
    if (group.leader()) value = *reinterpret_cast<const float*>(tile.data);
  }
};

TEST(Collectives, BlockHooksAreNotCalledForEmptyTiles) {
  for (const uint32_t threads : {1u, 4u}) {
    run_local(2, [&](World& world) {
      const auto transport = direct_rendezvous(world, rings(2, 2, 64));
      std::vector<float> of_row = {1, 2, 4}, sums(3);
      Leg message;
      message.cols = 16;
      message.tile_bytes = message.cols * sizeof(float);
      message.bytes = of_row.size() * message.tile_bytes;  // by four shares: the last has none
      launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
        return all_reduce<ReduceOp::sum, float>(group, transport->table(), message, MakeRow{&of_row},
                                                TakeRow{&sums}, deadline);
      }},
             {2, threads});
      EXPECT_EQ(sums, (std::vector<float>{2, 4, 8}));
    });
  }
}

TEST(Collectives, Hooks) {
  for (const uint32_t threads : {1u, 4u}) {
    run_local(4, [&](World& world) {
      const auto transport = make(world, Kind::mixed, rings(2, 2, 256));
      with_hooks<TwiceProduce, AddShard>(world, *transport, threads);
      with_hooks<TwiceTile, AddShardTile>(world, *transport, threads);
      const auto packets = direct_rendezvous(world, with_packets(rings(2, 2, 256), 1 << 15));
      with_hooks<TwiceProduce, AddShard>(world, *packets, threads);
      EXPECT_FALSE(sent_over(*packets, world.rank() ^ 1).second);
      with_hooks<TwiceTile, AddShardTile>(world, *packets, threads);
    });
  }
}

}  // namespace
}  // namespace chorale
