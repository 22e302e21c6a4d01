// These tests check that a transfer whose tiles arrive slowly may take longer than the timeout, which applies
// to each wait.

#include <algorithm>
#include <chrono>
#include <thread>

#include "support.hpp"
#include "tests/unit/thrown.hpp"
#include "transports.hpp"

namespace chorale {
namespace {

using namespace test;
using namespace std::chrono_literals;

constexpr uint64_t tile = 256, tiles = 40;
constexpr std::chrono::nanoseconds timeout = 400ms, pause = 30ms;  // 40 pauses are three timeouts

void rest(uint64_t index) {
  if (index % tile == 0) std::this_thread::sleep_for(pause);
}

struct SlowProduce {
  template <class X>
  Vector<char> produce(const Ctx<X>& ctx) const {
    rest(ctx.index);
    return load_elements<char>(ctx.in, ctx.index, ctx.count);
  }
};

struct SlowConsume {
  template <class X>
  void consume(const Ctx<X>& ctx, const Vector<char>& values) const {
    rest(ctx.index);
    store_elements<char>(ctx.out, ctx.index, values, ctx.count);
  }
};

/// Sends the data from rank 0 to rank 1.
template <class Produce, class Consume>
void transfer_slowly(uint32_t threads) {
  run_local(2,
            [&](World& world) {
              const auto transport = direct_rendezvous(world, rings(1, 2, tile));
              std::vector<char> data(tile * tiles);
              if (world.rank() == 0) std::fill(data.begin(), data.end(), char(7));
              launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
                const Endpoint e = transport->table().at(1 - world.rank(), group.id);
                const Leg leg = leg_of<char>(data.data(), data.data(), data.size());
                return world.rank() == 0 ? send_tiles<char>(group, e, leg, Produce{}, deadline)
                                         : recv_tiles<char>(group, e, leg, Consume{}, deadline);
              }},
                     {1, threads});
              EXPECT_EQ(data, std::vector<char>(tile * tiles, 7));
            },
            {.timeout = timeout});
}

TEST(SlowTransfer, OfASenderThatRests) { transfer_slowly<SlowProduce, CopyConsume>(1); }
TEST(SlowTransfer, OfAReceiverThatRests) { transfer_slowly<CopyProduce, SlowConsume>(1); }
TEST(SlowTransfer, OfBlocksOfSeveralThreads) { transfer_slowly<SlowProduce, SlowConsume>(4); }

/// A block that polls for a stop is waiting for something, even if its threads synchronise for each poll.
TEST(SlowTransfer, ALoopOfSyncsIsEnded) {
  for (const uint32_t threads : {1u, 4u}) {
    run_local(2,
              [&](World& world) {
                const auto transport = direct_rendezvous(world, rings(1, 2, tile));
                const std::string said = thrown([&] {
                  launch(*transport, Call{[&](const Group& group, const Deadline& deadline) {
                    for (;;) {
                      // Rank 1 makes progress, which says nothing about rank 0.
                      if (world.rank() == 1) group.park([] { return true; }, 1);
                      const Stop stop = world.rank() == 1 ? group.stopped() : stop_for(group, deadline);
                      if (stop != Stop::none) return stop;
                    }
                  }},
                         {1, threads});
                });
                EXPECT_NE(said.find("a launch of rank 0 has made no progress for 0.4 s"), std::string::npos)
                    << said;
              },
              {.timeout = timeout});
  }
}

}  // namespace
}  // namespace chorale
