/// \file
/// Checks launches in a row, between which only the plans themselves wait.

#include <chrono>
#include <random>
#include <thread>

#include "tests/hosts/harness.hpp"

namespace chorale::test {
namespace {

/// Pauses for a moment on some ranks, sometimes, so that ranks are in different runs.
class Dawdling {
 public:
  explicit Dawdling(int rank) : random_(uint32_t(rank) * 7919 + 1) {}
  void operator()() {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 3000));
  }

 private:
  std::minstd_rand random_;
};

using HostsInTurn = Hosts;

TEST_P(HostsInTurn, many_launches_with_new_data) {
  const HostsOfRanks hosts = {0, 0, 1, 1};
  for (const char* const name : {"hosts_put_signal_flush", "hosts_put_packets", "allreduce_two_level"}) {
    const Plan plan = make_plan(name, int(hosts.size()));
    const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
      Executor executor(world);
      Dawdling dawdle(world.rank());
      const uint64_t bytes = some_sizes(plan, {9001})[0];
      const MessageSizes sizes = message_sizes(plan, bytes, DType::i32);
      Ints out(sizes.output / 4);
      for (int launch = 0; launch < 80; ++launch) {
        dawdle();
        const Ints in = input_of(uint32_t(world.rank()), sizes.input, launch);
        executor.execute(plan, {.in = in.data(), .out = out.data(), .bytes = bytes, .dtype = DType::i32});
        if (out != output_of(plan, uint32_t(world.rank()), sizes, launch))
          return verdict(plan.name + ": launch " + std::to_string(launch) + " is wrong");
      }
      return 0;
    });
    EXPECT_EQ(codes, all_well(hosts)) << name;
  }
}

TEST_P(HostsInTurn, several_plans_and_sizes) {
  const HostsOfRanks hosts = {0, 1, 2};
  std::vector<Plan> plans;
  for (const char* const name : {"hosts_put_signal_flush", "hosts_put_packets", "hosts_reuse_after_flush"})
    plans.push_back(make_plan(name, int(hosts.size())));
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Config config;
    config.bindings = 4;  // of nine calls, so that bindings are evicted and made again
    Executor executor(world, config);
    Dawdling dawdle(world.rank());
    for (int turn = 0; turn < 30; ++turn) {
      for (const Plan& plan : plans) {
        dawdle();
        const uint64_t bytes = some_sizes(plan, {uint64_t(turn % 3) * 5000 + 1})[0];
        const std::string wrong = run_rank(world, executor, plan, {.bytes = bytes, .launches = 2});
        if (!wrong.empty()) return verdict(plan.name + ": " + wrong);
      }
    }
    return 0;
  });
  EXPECT_EQ(codes, all_well(hosts));
}

TEST_P(HostsInTurn, two_executors) {
  const HostsOfRanks hosts = {0, 1, 1};
  const Plan first = make_plan("hosts_put_signal_flush", 3), second = make_plan("hosts_put_packets", 3);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor one(world), two(world);
    for (int turn = 0; turn < 20; ++turn) {
      for (Executor* const executor : {&one, &two}) {
        for (const Plan* const plan : {&first, &second}) {
          const std::string wrong =
              run_rank(world, *executor, *plan, {.bytes = some_sizes(*plan, {333})[0], .launches = 1});
          if (!wrong.empty()) return verdict(plan->name + ": " + wrong);
        }
      }
    }
    return 0;
  });
  EXPECT_EQ(codes, all_well(hosts));
}

TEST_P(HostsInTurn, a_sender_ends_when_the_others_have_it) {
  const HostsOfRanks hosts = {0, 1, 1};
  const Plan plan = unproved("hosts_give", 3);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world);
    Ints data(5000), out(5000);
    const Arguments arguments{.in = data.data(), .out = out.data(), .bytes = 20000, .dtype = DType::i32};
    executor.prepare(plan, arguments);
    for (int launch = 0; launch < 10; ++launch) {
      data.assign(data.size(), world.rank() == 0 ? launch : -1);
      world.barrier();
      if (world.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      executor.execute(plan, arguments);
      // The application may use the input again when the launch has ended, even if the others have not begun
      // theirs.
      data.assign(data.size(), -2);
      if (out != Ints(out.size(), launch)) return verdict("launch " + std::to_string(launch) + " is wrong");
    }
    return 0;
  });
  EXPECT_EQ(codes, all_well(hosts));
}

INSTANTIATE_TEST_SUITE_P(Transports, HostsInTurn, both_transports, transport_name);

}  // namespace
}  // namespace chorale::test
