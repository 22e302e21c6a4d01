/// \file
/// Long transfers to another host go in parts, and one that moves outlives the time-out.

#include <algorithm>
#include <chrono>
#include <thread>

#include "executor/cpu/courier.hpp"
#include "executor/cpu/machine.hpp"
#include "executor/cpu/port.hpp"
#include "executor/world/group.hpp"
#include "tests/hosts/harness.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;

using HostsAndLongTransfers = Hosts;

TEST_P(HostsAndLongTransfers, come_in_parts_and_right) {
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = make_plan("hosts_put_signal_flush", 2, {{"joined", "true"}});
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world);
    const uint64_t bytes = (4 << 20) + 20;  // a part, and some more
    return verdict(run_rank(world, executor, plan, {.bytes = 2 * bytes, .launches = 2}));
  });
  EXPECT_EQ(codes, all_well(hosts));
}
INSTANTIATE_TEST_SUITE_P(Transports, HostsAndLongTransfers, both_transports, transport_name);

/// A channel from rank 0 to rank 1, by which rank 0 sends a signal in each of several launches.
struct Signals {
  static constexpr uint64_t launches = 7;
  static constexpr std::chrono::nanoseconds pause = 900ms, timeout = 5s;  // 7 pauses are longer

  Signals(World& world, cpu::Fifo* fifo, uint64_t binding) {
    run.image.channels = &channel;
    run.image.buffers = &buffer;
    run.rank = uint32_t(world.rank());
    run.deadline = Deadline{world.abort_word(), 0, 0};
    run.signals = &signal;
    run.completed = &completed;
    run.fifo = fifo;
    run.binding = binding;
    run.far = &far;
    channel = {.peer = uint32_t(1 - world.rank()), .signal_at_peer = 0};
  }

  image::Channel channel;
  image::Buffer buffer;
  Signal signal, completed;
  const char far = 1;
  cpu::Run run;
};

/// Sends all launches' signals; rank 1 takes one after the other.
std::string send(World& world, cpu::Courier& courier, uint64_t binding) {
  cpu::Proxy proxy(world.scheduler(), &courier);
  Signals all(world, &proxy.fifo(), binding);
  std::vector<cpu::Run> runs(Signals::launches, all.run);
  for (uint64_t at = 0; at < Signals::launches; ++at) {
    runs[at].epoch = at + 1;
    cpu::Trigger trigger;
    trigger.run = &runs[at];
    trigger.action = Action::signal;
    proxy.fifo().push(Group{}, all.run.deadline, trigger);
  }
  proxy.begin();
  const Stop stop = proxy.end(false, all.run.deadline);
  world.check();
  return stop == Stop::none && all.completed.value == Signals::launches ? "" : "rank 0 has not sent all";
}

/// Takes the signals as a block does that waits for the last of them.
std::string take(World& world, cpu::Courier& courier, uint64_t binding) {
  Signals all(world, nullptr, binding);
  std::thread slowly([&] {
    for (uint64_t epoch = 1; epoch <= Signals::launches; ++epoch) {
      std::this_thread::sleep_for(Signals::pause);
      all.run.epoch = epoch;
      courier.begin(binding, all.run);
      while (load_acquire(&all.signal.value) < epoch && load_acquire(&world.abort_word()->stop) == 0)
        courier.work();
    }
    courier.start_clock();
    while (!courier.settled()) courier.work();
  });
  const cpu::LaunchResult result = world.scheduler().launch(1, 1, [&](int block, cpu::BlockHost& host) {
    wait_until(block_group(uint32_t(block), 1, &host), &all.signal, Cmp::ge, Signals::launches,
               all.run.deadline);
  });
  slowly.join();
  world.check();
  return result.stop == Stop::none ? "" : "rank 1 has not taken all";
}

TEST(HostsAndTheTimeout, SignalsThatComeSteadilyOutliveIt) {
#ifndef CHORALE_WITH_UCX
  GTEST_SKIP() << "this library was built without UCX";
#endif
  const HostsOfRanks hosts = {0, 1};
  const std::vector<int> codes = on_hosts(
      hosts,
      [&](World& world) {
        cpu::Courier courier(world);
        courier.connect();
        const uint64_t binding = courier.enrol({1 - world.rank()});
        const std::string wrong =
            world.rank() == 0 ? send(world, courier, binding) : take(world, courier, binding);
        if (wrong.empty()) world.barrier();
        return verdict(wrong);
      },
      Signals::timeout);
  EXPECT_EQ(codes, all_well(hosts));
}

}  // namespace
}  // namespace chorale::test
