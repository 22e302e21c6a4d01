// Tests the proxy of port channels. The test pushes what blocks would push.

#include "executor/cuda/proxy/proxy.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "state.hpp"
#include "tests/cuda/ranks.hpp"

namespace chorale::test {
namespace {

/// Nothing can arrive after the failed copy, although blocks here and at peers wait for it.
TEST(PortChannels, ACopyThatFailsStopsTheWorld) {
  const auto said = on_processes(2, [](World& world) -> std::string {
    fake::state().copies_fail = true;
    Signal completed;
    char from[16] = {}, to[16] = {};
    cuda::Proxy proxy(world, 0);
    cuda::Proxy::Client client(proxy, {nullptr}, &completed, {0});
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

/// Kernels that fill the queues to the GPU must not delay signals.
TEST(PortChannels, SignalsComeBehindTheirCopies) {
  const auto said = on_processes(1, [](World& world) -> std::string {
    fake::state().copies_are_slow = fake::state().one_queue = true;
    fake::state().kernels = 1;
    constexpr size_t bytes = 4096, times = 600;  // more than may be in flight
    std::vector<char> from(bytes * times), to(bytes * times);
    for (size_t at = 0; at < from.size(); ++at) from[at] = char(at % 251 + 1);
    Signal there, completed;
    cuda::Proxy proxy(world, 0);
    cuda::Proxy::Client client(proxy, {&there}, &completed, {0});
    const cuda::PortFifo fifo = client.fifo();
    for (size_t time = 0; time < times; ++time) {
      cuda::PortTrigger& next = fifo.slots[time];
      next.from = from.data() + time * bytes;
      next.to = to.data() + time * bytes;
      next.bytes = bytes;
      next.signal = true;
      next.client = fifo.client;
      store_release(&next.turn, uint64_t(time + 1));
    }
    size_t seen = 0;
    for (int looks = 0; looks < 30000 && seen < times; ++looks) {
      const size_t now = load_acquire(&there.value);
      for (; seen < now; ++seen) {
        if (std::memcmp(to.data() + seen * bytes, from.data() + seen * bytes, bytes) != 0)
          return fmt::format("signal {} came before its bytes", seen + 1);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    fake::state().kernels = 0;  // a stream that waits for them would keep the client alive
    if (seen != times) return fmt::format("{} signals came", seen);
    for (int looks = 0; looks < 30000 && load_acquire(&completed.value) < times; ++looks)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return load_acquire(&completed.value) == times ? "good" : "not all is said to be done";
  });
  EXPECT_EQ(said, std::vector<std::string>(1, "good"));
}

}  // namespace
}  // namespace chorale::test
