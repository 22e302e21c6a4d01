// These tests check what drain() guarantees about a proxy's copy of the ring.

#include "support.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;

/// The messages fit in the ring, so only drain() waits for the proxy, which runs when the seed says so.
TEST(Seeds, BehindDrainNothingIsReadFromTheCopy) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    run_local(2,
              [&](World& world) {
                const auto transport = make(world, Kind::port, rings(1, 4, 64));
                std::vector<char> data(100, char(world.rank()));
                const Leg leg = leg_of<char>(data.data(), data.data(), data.size());
                launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
                  const Endpoint& e = transport->table().at(1 - world.rank(), group.id);
                  if (world.rank() == 1) return recv_tiles<char, Port>(group, e, leg, {}, deadline);
                  Stop stop = send_tiles<char, Port>(group, e, leg, {}, deadline);
                  if (stop == Stop::none) stop = Port::drain(group, e, deadline);
                  const uint64_t orders = load_relaxed(&e.local->cursor.orders);
                  EXPECT_EQ(orders, 2u);
                  EXPECT_EQ(load_relaxed(&e.told->left.value), orders) << "seed " << seed;
                  return stop;
                }},
                       {1});
              },
              {.seed = seed});
  }
}

}  // namespace
}  // namespace chorale
