// What a stop in the middle leaves behind: nothing that a peer would take for data.

#include "support.hpp"

namespace chorale {
namespace {

using namespace test;

/// Aborts the world when it makes element `at`.
struct AbortingProduce {
  World* world;
  uint64_t at;

  template <class X>
  Vector<uint32_t> produce(const Ctx<X>& ctx) const {
    if (ctx.index <= at && at < ctx.index + ctx.count) world->abort("on purpose");
    return load_elements<uint32_t>(ctx.in, ctx.index, ctx.count);
  }
};

TEST(Stop, AbortInTheMiddle) {
  for (const uint32_t threads : {1u, 8u}) {
    for (const uint64_t at : {0, 100, 1999}) {
      run_local(2, [&](World& world) {
        const auto transport = direct_rendezvous(world, rings(2, 2, 256));
        const uint64_t n = 2000;
        const auto exchange = [&](uint64_t message) {
          const auto sent = message_of<uint32_t>(message, n);
          if (world.rank() == 0) {
            send(*transport, sent.data(), n, 1, {}, {2, threads});
            return;
          }
          std::vector<uint32_t> got(n);
          recv(*transport, got.data(), n, 0, {}, {2, threads});
          EXPECT_MESSAGE(got, sent);
        };
        exchange(1);
        world.barrier();  // the abort is not to come into this one
        const uint64_t received = load_relaxed(&transport->endpoint(0, 0).local->cursor.received);

        const auto data = message_of<uint32_t>(2, n);
        std::vector<uint32_t> out(n);
        std::string said;
        try {
          if (world.rank() == 0) {
            send(*transport, data.data(), n, 1, AbortingProduce{&world, at}, {2, threads});
          } else {
            recv(*transport, out.data(), n, 0, {}, {2, threads});
          }
        } catch (const RunError& error) {
          EXPECT_EQ(error.reason, RunError::Reason::aborted);
          said = error.what();
        }
        EXPECT_NE(said.find("on purpose"), std::string::npos) << said;
        if (world.rank() == 1 && at == 0) {
          EXPECT_EQ(load_relaxed(&transport->endpoint(0, 0).local->cursor.received), received);
        }

        world.reset();
        EXPECT_THROW(exchange(3), UsageError) << "the links hold what was left";
        transport->reset();
        exchange(4);
        exchange(5);
      });
    }
  }
}

/// Rank 0 waits for data that does not come, but not for ever; rank 1 keeps the world busy meanwhile.
struct Impatient {
  EndpointTable table;
  std::atomic<bool>* over;
  char* out;
  Stop* stops;  // by thread of rank 0

  Stop operator()(const Group& group, const Deadline& world) const {
    const Endpoint& e = table.at(1 - table.self, 0);
    if (table.self == 1) {
      while (!*over) group.park([]() { return true; }, 1);
      return Stop::none;
    }
    Deadline deadline = world;
    deadline.ticks = 2'000'000;
    Leg leg;
    leg.out = out;
    leg.in = out;
    leg.bytes = 1000;
    Stop stop = recv_tiles<char>(group, e, leg, CopyConsume{}, deadline);
    // The ring takes two tiles, then there is no credit.
    if (stop == Stop::timed_out) stop = send_tiles<char>(group, e, leg, CopyProduce{}, deadline);
    stops[group.rank] = stop;
    group.sync();
    if (group.leader()) *over = true;
    return Stop::none;
  }
};

TEST(Stop, TimeoutIsAlikeInAllThreadsAndAdvancesNothing) {
  for (const uint32_t threads : {1u, 8u}) {
    run_local(2, [&](World& world) {
      static std::atomic<bool> over;
      if (world.rank() == 0) over = false;
      const auto transport = direct_rendezvous(world, rings(1, 2, 256));
      std::vector<char> out(1000);
      std::vector<Stop> stops(threads, Stop::none);
      launch(*transport, Impatient{transport->table(), &over, out.data(), stops.data()}, {1, threads});
      const LinkState& link = *transport->endpoint(1 - world.rank(), 0).local;
      EXPECT_EQ(load_relaxed(&link.cursor.sent), 0u);
      EXPECT_EQ(load_relaxed(&link.cursor.received), 0u);
      EXPECT_EQ(load_relaxed(&link.slot_free.value), 0u);
      if (world.rank() == 0) {
        EXPECT_EQ(stops, std::vector<Stop>(threads, Stop::timed_out));
      } else {
        EXPECT_EQ(load_relaxed(&link.data_ready.value), 512u) << "the two tiles that there was room for";
      }
    });
  }
}

TEST(Stop, AHangSaysWhoWaitsForWhom) {
  std::string said;
  try {
    run_local(2, [](World& world) {
      const auto transport = direct_rendezvous(world, rings(1, 2, 256));
      std::vector<char> data(1000);
      // Both receive.
      recv(*transport, data.data(), data.size(), 1 - world.rank(), {}, {1});
    });
  } catch (const RunError& error) {
    EXPECT_EQ(error.reason, RunError::Reason::deadlock);
    said = error.what();
  }
  EXPECT_NE(said.find("rank 0 block 0 of recv from rank 1, channel 0: the peer's data has come up to byte 0"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace chorale
