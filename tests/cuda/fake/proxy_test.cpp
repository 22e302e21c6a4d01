// The proxy of port channels: what blocks push is pushed by the test.

#include "executor/cuda/proxy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "state.hpp"
#include "tests/cuda/ranks.hpp"

namespace chorale::test {
namespace {

/// What comes behind it never will: blocks here and at peers wait for it.
TEST(PortChannels, ACopyThatFailsStopsTheWorld) {
  const auto said = on_processes(2, [](World& world) -> std::string {
    fake::state().copies_fail = true;
    Signal completed;
    char from[16] = {}, to[16] = {};
    cuda::Proxy proxy(world, 0);
    cuda::Proxy::Client client(proxy, {nullptr}, &completed);
    if (world.rank() == 1) {
      const cuda::PortFifo fifo = client.fifo();
      cuda::PortTrigger& first = fifo.slots[0];
      first.from = from;
      first.to = to;
      first.bytes = sizeof from;
      first.client = fifo.client;
      store_release(&first.turn, uint64_t{1});
    }
    try {
      for (int looks = 0; looks < 20000; ++looks) {
        world.check();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    } catch (const RunError& stopped) {
      return stopped.what();
    }
    return "nothing";
  });
  for (const std::string& one : said)
    EXPECT_EQ(one.find("aborted by rank 1: the proxy of port channels: a copy of a port channel: "), 0u)
        << one;
}

}  // namespace
}  // namespace chorale::test
