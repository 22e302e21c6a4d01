// Messages that say their length, over every kind of transport and between other messages.

#include <array>

#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

/// To the right and from the left, by halves of the groups; what was sent is written by group 0 of the
/// second.
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
  for (const Kind kind : {Kind::direct, Kind::port, Kind::tcp, Kind::mixed}) {
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

/// They leave the rings where others go on.
TEST(Messages, BetweenTiles) {
  run_local(3, [&](World& world) {
    const auto transport = direct_rendezvous(world, rings(2, 2, 64));
    const int right = (world.rank() + 1) % 3, left = (world.rank() + 2) % 3;
    for (uint64_t call = 0; call < 20; ++call) {
      exchange(world, *transport, call, call * 37, {4, 1});
      const auto in = message_of<int32_t>(call * 3 + uint64_t(world.rank()), 50 + call);
      const auto expected = message_of<int32_t>(call * 3 + uint64_t(left), 50 + call);
      std::vector<int32_t> out(in.size());
      sendrecv(*transport, in.data(), out.data(), in.size(), right, left, {}, {}, {2});
      EXPECT_MESSAGE(out, expected);
    }
  });
}

/// Both lengths are told, nothing is taken, and the receiver's kernel decides what comes of it.
TEST(Messages, OtherLengthsAreTold) {
  for (const auto& [sends, receives] : {std::array<uint64_t, 2>{5, 6}, {700, 699}, {0, 900}, {900, 0}}) {
    run_local(2, [&, sends = sends, receives = receives](World& world) {
      const auto transport = direct_rendezvous(world, rings(1, 8, 256));
      const std::vector<char> in(1000, 'a');
      std::vector<char> out(1000, 'x');
      uint64_t sent = 0;
      launch(*transport, Ring{transport->table(), in.data(), out.data(), sends, receives, &sent}, {2, 1});
      EXPECT_EQ(sent, sends);
      EXPECT_EQ(out, std::vector<char>(1000, 'x'));
    });
  }
}

TEST(Messages, OtherNumbersOfGroupsAreRefused) {
  const std::string said = message_of_error<std::logic_error>([] {
    run_local(2, [](World& world) {
      const auto transport = direct_rendezvous(world, rings(2, 8, 256));
      std::vector<char> data(100);
      uint64_t sent = 0;
      launch(*transport, Ring{transport->table(), data.data(), data.data(), 50, 50, &sent},
             {world.rank() == 0 ? 2u : 4u, 1});
    });
  });
  EXPECT_NE(said.find("sends a message by "), std::string::npos) << said;
  EXPECT_NE(said.find("give both the same number of blocks"), std::string::npos) << said;
}

}  // namespace
}  // namespace chorale
