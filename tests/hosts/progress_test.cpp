/// \file
/// Checks that long transfers to another host go in parts, and that a transfer that makes progress outlives
/// the timeout.

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "executor/cpu/port.hpp"
#include "executor/cpu/run.hpp"
#include "executor/remote/host_copies.hpp"
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
    const uint64_t bytes = (4 << 20) + 20;  // one part and some more
    return verdict(run_rank(world, executor, plan, {.bytes = 2 * bytes, .launches = 2}));
  });
  EXPECT_EQ(codes, all_well(hosts));
}
INSTANTIATE_TEST_SUITE_P(Transports, HostsAndLongTransfers, both_transports, transport_name);

/// Holds a channel from rank 0 to rank 1. Over it rank 0 puts into the output of rank 1 and signals, in each
/// of several launches.
struct Puts {
  static constexpr uint64_t launches = 7;
  static constexpr std::chrono::nanoseconds pause = 900ms, timeout = 5s;  // 7 pauses are longer

  explicit Puts(World& world) {
    memory.signals = &signal;
    memory.n_signals = 1;
    memory.runs_name_buffers = true;
    run.rank = uint32_t(world.rank());
    run.deadline = Deadline{world.abort_word(), 0, 0};
    run.completed = &completed;
    run.channels = {{.peer = 1 - world.rank(), .far = {1 - world.rank(), 0}}};
  }

  remote::RemoteEndpoint::Memory memory;
  Signal signal, completed;
  uint64_t data[2] = {};
  cpu::Run run;
};

/// Puts in all launches.
std::string send(World& world) {
  cpu::Proxy proxy(world.scheduler(), &world);
  Puts all(world);
  proxy.endpoint()->connect();
  all.run.binding = proxy.endpoint()->register_binding(all.memory, {1});
  all.run.client = proxy.add_client(all.run);
  std::vector<cpu::Run> runs(Puts::launches, all.run);
  for (uint64_t at = 0; at < Puts::launches; ++at) {
    runs[at].epoch = at + 1;
    runs[at].channels[0].far.posted = at;
    cpu::Trigger trigger;
    trigger.run = &runs[at];
    trigger.from = reinterpret_cast<char*>(all.data);
    trigger.to = remote::FarPlace::base(1, uint32_t(BufferKind::output));
    trigger.bytes = sizeof all.data;
    trigger.signal = true;
    proxy.fifo().push(Group{}, all.run.deadline, trigger);
  }
  proxy.begin();
  const Stop stop = proxy.end(false, all.run.deadline);
  world.check();
  if (stop == Stop::none) world.barrier();
  return stop == Stop::none && all.completed.value == Puts::launches ? "" : "rank 0 has not sent all";
}

/// Waits for the signals as a block does that waits for the last of them. A put waits for its launch here.
std::string take(World& world) {
  remote::RemoteEndpoint endpoint(world, std::make_unique<remote::HostCopies>(),
                                  {.done = {}, .moved = [&world] { world.scheduler().moved(); }});
  Puts all(world);
  endpoint.connect();
  const uint64_t binding = endpoint.register_binding(all.memory, {0});
  std::thread slowly([&] {
    for (uint64_t epoch = 1; epoch <= Puts::launches; ++epoch) {
      std::this_thread::sleep_for(Puts::pause);
      endpoint.begin_run(binding, epoch, {}, {reinterpret_cast<char*>(all.data), sizeof all.data});
      while (load_acquire(&all.signal.value) < epoch && load_acquire(&world.abort_word()->stop) == 0)
        endpoint.work();
    }
    endpoint.start_clock();
    while (!endpoint.settled()) endpoint.work();
  });
  const fibers::LaunchResult result = world.scheduler().launch(1, 1, [&](int block, fibers::BlockHost& host) {
    wait_until(block_group(uint32_t(block), 1, &host), &all.signal, Cmp::ge, Puts::launches,
               all.run.deadline);
  });
  slowly.join();
  world.check();
  if (result.stop == Stop::none) world.barrier();
  return result.stop == Stop::none ? "" : "rank 1 has not taken all";
}

TEST(HostsAndTheTimeout, PutsThatComeSteadilyOutliveIt) {
#ifndef CHORALE_WITH_UCX
  GTEST_SKIP() << "this library was built without UCX";
#endif
  const HostsOfRanks hosts = {0, 1};
  const std::vector<int> codes = on_hosts(
      hosts, [&](World& world) { return verdict(world.rank() == 0 ? send(world) : take(world)); },
      Puts::timeout);
  EXPECT_EQ(codes, all_well(hosts));
}

}  // namespace
}  // namespace chorale::test
