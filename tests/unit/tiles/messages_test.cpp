// These tests send messages that carry their length, over every kind of transport and between other messages.

#include <array>

#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

/// Sends to the right and receives from the left, by halves of the groups. Group 0 of the second half writes
/// what was sent.
struct Ring {
  EndpointTable table;
  const char* in;
  char* out;
  uint64_t sends, receives;
  uint64_t* sent;

  Stop operator()(const Group& all, const Deadline& deadline) const {
    const int right = (table.self + 1) % table.ranks, left = (table.self + table.ranks - 1) % table.ranks;
    const Split part = all.split_interleaved(2);
    const Group& group = part.group;
    if (part.part == 0) {
      const Endpoint& to = table.at(right, group.id);
      return with_link(to, [&](auto fabric) {
        const Stop stop = send_message<decltype(fabric)>(group, to, in, sends, deadline);
        return stop != Stop::none ? stop : decltype(fabric)::drain(group, to, deadline);
      });
    }
    const Endpoint& from = table.at(left, group.id);
    uint64_t said = 0;
    const Stop stop = with_link(from, [&](auto fabric) {
      return recv_message<decltype(fabric)>(group, from, out, receives, deadline, said);
    });
    if (group.id == 0 && group.leader()) *sent = said;
    return stop;
  }
};

void exchange(World& world, Transport& transport, uint64_t call, uint64_t n, const LaunchConfig& config) {
  const uint64_t self = uint64_t(world.rank()),
                 left = (self + uint64_t(world.ranks()) - 1) % uint64_t(world.ranks());
  const auto in = message_of<char>(call * 10 + self, n), expected = message_of<char>(call * 10 + left, n);
  std::vector<char> out(n, 'x');
  uint64_t sent = 0;
  launch(transport, Ring{transport.table(), in.data(), out.data(), n, n, &sent}, config);
  EXPECT_MESSAGE(out, expected) << n << " bytes";
  EXPECT_EQ(sent, n);
}

TEST(Messages, OverEveryTransport) {
  for (const Kind kind : all_kinds) {
    for (const uint32_t threads : {1u, 8u}) {
      run_local(4, [&](World& world) {
        const auto transport = make(world, kind, rings(3, 2, 96));
        for (const uint64_t n : {0, 1, 15, 16, 79, 80, 81, 96, 240, 1000, 5003}) {
          exchange(world, *transport, n, n, {2, threads});
          exchange(world, *transport, n + 1, n, {6, threads});
        }
      });
    }
  }
}

/// Shares that fit in a bank go as packets, others through the ring after one.
TEST(Messages, AsPackets) {
  for (const uint64_t bytes : {1, 16, 17, 64, 200}) {
    for (const uint32_t threads : {1u, 8u}) {
      run_local(3, [&](World& world) {
        const auto transport = direct_rendezvous(world, with_packets(rings(3, 2, 96), bytes));
        for (const uint64_t n : {0, 1, 15, 16, 17, 47, 48, 49, 96, 97, 184, 185, 553, 2000}) {
          exchange(world, *transport, n, n, {2, threads});
          exchange(world, *transport, n + 1, n, {6, threads});
        }
      });
    }
  }
}

/// Messages are right in any order of ranks, blocks and threads, even with several in flight on one
/// link.
TEST(Messages, AreRightInAThousandOrders) {
  struct Several {
    EndpointTable table;
    const char* in;
    char* out;
    uint64_t lengths[5];

    Stop operator()(const Group& all, const Deadline& deadline) const {
      const Split part = all.split_interleaved(2);
      const Endpoint& e = table.at(1 - table.self, part.group.id);
      uint64_t at = 0;
      for (const uint64_t length : lengths) {
        uint64_t sent = 0;
        const Stop stop = part.part == 0 ? send_message(part.group, e, in + at, length, deadline)
                                         : recv_message(part.group, e, out + at, length, deadline, sent);
        if (stop != Stop::none) return stop;
        at += length;
      }
      return Stop::none;
    }
  };
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    run_local(2,
              [&](World& world) {
                const auto transport =
                    direct_rendezvous(world, with_packets(rings(2, 2, 32), seed % 2 ? 64 : 16));
                Several kernel{transport->table(), nullptr, nullptr, {}};
                uint64_t all = 0;
                for (uint64_t at = 0; at < 5; ++at) all += kernel.lengths[at] = mix(seed * 5 + at) % 200;
                const auto self = uint64_t(world.rank());
                for (uint64_t call = 0; call < 2; ++call) {
                  const auto in = message_of<char>(seed * 10 + call * 2 + self, all),
                             expected = message_of<char>(seed * 10 + call * 2 + 1 - self, all);
                  std::vector<char> out(all);
                  kernel.in = in.data();
                  kernel.out = out.data();
                  launch(*transport, kernel, {4, seed % 3 == 0 ? 4u : 1u});
                  ASSERT_EQ(first_difference(out.data(), expected.data(), all), all) << "seed " << seed;
                }
              },
              {.seed = seed});
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

/// Messages leave the rings and packets in the state that others expect.
TEST(Messages, BetweenTiles) {
  run_local(3, [&](World& world) {
    const auto transport = direct_rendezvous(world, with_packets(rings(2, 2, 64), 100));
    const int right = (world.rank() + 1) % 3, left = (world.rank() + 2) % 3;
    for (uint64_t call = 0; call < 20; ++call) {
      exchange(world, *transport, call, call * 37, {4, 1});
      const auto in = message_of<int32_t>(call * 3 + uint64_t(world.rank()), 50 + call);
      const auto expected = message_of<int32_t>(call * 3 + uint64_t(left), 50 + call);
      std::vector<int32_t> out(in.size());
      sendrecv(*transport, in.data(), out.data(), in.size(), right, left, {}, {}, {2});
      EXPECT_MESSAGE(out, expected);
      std::vector<int32_t> short_out(20);
      const Call shift{[&](const Group& group, const Deadline& deadline) {
        const Leg leg = leg_of<int32_t>(in.data(), short_out.data(), short_out.size());
        const Stop stop = send_packets<LL8, int32_t>(group, transport->table().at(right, group.id), leg,
                                                     CopyProduce{}, deadline);
        if (stop != Stop::none) return stop;
        return recv_packets<LL8, int32_t>(group, transport->table().at(left, group.id), leg, CopyConsume{},
                                          deadline);
      }};
      launch(*transport, shift, {1});
      EXPECT_EQ(first_difference(short_out.data(), expected.data(), short_out.size()), short_out.size());
    }
  });
}

/// Both lengths are reported, nothing is taken, and the receiver's kernel decides what to do. This one lets
/// the world continue, because no peer waits for space. Messages of up to 48 bytes go as packets.
TEST(Messages, OtherLengthsAreTold) {
  for (const uint64_t packets : {0, 64}) {
    for (const auto& [sends, receives] :
         {std::array<uint64_t, 2>{5, 6}, {700, 699}, {0, 900}, {900, 0}, {40, 49}, {49, 40}, {0, 1}}) {
      run_local(2, [&, sends = sends, receives = receives](World& world) {
        const auto transport = direct_rendezvous(world, with_packets(rings(1, 8, 256), packets));
        const std::vector<char> in(1000, 'a');
        std::vector<char> out(1000, 'x');
        uint64_t sent = 0;
        const Ring ring{transport->table(), in.data(), out.data(), sends, receives, &sent};
        launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
          const Stop stop = ring(group, deadline);
          return stop == Stop::aborted && sent != receives ? Stop::none : stop;
        }},
               {2, 1});
        EXPECT_EQ(sent, sends);
        EXPECT_EQ(out, std::vector<char>(1000, 'x'));
      });
    }
  }
}

TEST(Messages, OtherNumbersOfGroupsAreRefused) {
  for (const uint64_t packets : {0, 64}) {
    const std::string said = message_of_error<std::logic_error>([&] {
      run_local(2, [&](World& world) {
        const auto transport = direct_rendezvous(world, with_packets(rings(2, 8, 256), packets));
        std::vector<char> data(100);
        uint64_t sent = 0;
        launch(*transport, Ring{transport->table(), data.data(), data.data(), 50, 50, &sent},
               {world.rank() == 0 ? 2u : 4u, 1});
      });
    });
    EXPECT_NE(said.find("sends a message by "), std::string::npos) << said;
    EXPECT_NE(said.find("give both the same number of blocks"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace chorale
