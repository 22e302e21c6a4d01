// These tests simulate all shipped plans on the shipped machine.

#include <gtest/gtest.h>

#include "chorale/comparison.hpp"
#include "chorale/profile.hpp"
#include "tests/unit/shipped_plans.hpp"
#include "tests/unit/simulation/made_up.hpp"

namespace chorale {
namespace {

Machine h200() { return load_machine(CHORALE_SOURCE_DIR "/plans/machines/nvidia_h200.json"); }

Plan shipped(const std::string& name) { return load(CHORALE_SOURCE_DIR "/plans/shipped/" + name + ".json"); }

TEST(ShippedPlans, TakeLongerForMoreBytes) {
  const Machine machine = h200();
  size_t plans = 0;
  for (const std::string& name : test::shipped_plans()) {
    SCOPED_TRACE(name);
    const Plan plan = load(name);
    Simulator simulator(plan);
    double before = 0;
    for (const uint64_t kib : {1, 64, 1024, 16 * 1024, 256 * 1024, 1024 * 1024}) {
      const SimulatedCall call{.bytes = kib << 10, .dtype = DType::bf16};
      const double ns = simulator.simulate(call, machine).ns;
      EXPECT_GT(ns, machine.launch_graph_ns);
      // If all blocks signal at once, a little data may bring them into a better order.
      EXPECT_GE(ns, kib > 1024 ? before : before * 0.8) << kib;
      before = ns;
    }
    // The result is the same again, even after other sizes.
    const SimulatedCall call{.bytes = 1024, .dtype = DType::bf16};
    EXPECT_EQ(simulator.simulate(call, machine).ns, simulate(plan, call, machine).ns);
    ++plans;
  }
  EXPECT_GT(plans, 150u);
}

TEST(ShippedPlans, ProfilesAccountForAllTime) {
  const Machine machine = h200();
  for (const char* const name : {"allgather_ring_4", "allreduce_two_shot_4", "allreduce_two_level_4",
                                 "broadcast_ring_4", "alltoall_by_port_4", "reducescatter_direct_b16_8"}) {
    SCOPED_TRACE(name);
    const Plan plan = shipped(name);
    const Simulation result = simulate(plan, {.bytes = 1 << 20, .spans = true}, machine);
    const Profile where = profile(plan, {.bytes = 1 << 20}, result.spans, Clocks::one);
    EXPECT_EQ(where.launch, 1u);
    EXPECT_NEAR(double(where.launch_ns), result.ns - result.launch_ns, 1);
    uint64_t path_ns = 0;
    for (const ProfileStretch& stretch : where.path) path_ns += stretch.to_ns - stretch.from_ns;
    EXPECT_EQ(path_ns, where.launch_ns);
  }
}

/// Compared with another machine's prediction, the largest gap is at what that machine does more slowly.
TEST(ShippedPlans, ASlowerMachineHasItsGapWhereItIsSlower) {
  const Machine machine = h200();
  struct Slower {
    const char* plan;
    double Machine::*parameter;
    double factor;
    const char* operation;
  };
  for (const Slower& slower :
       {Slower{"allgather_ring_4", &Machine::block_put_gb_s, 0.25, "put"},
        Slower{"allgather_ring_4", &Machine::release_ns, 50, "signal"},
        Slower{"allreduce_one_shot_4", &Machine::block_ll128_read_gb_s, 0.1, "combine_packets"}}) {
    SCOPED_TRACE(slower.plan);
    const Plan plan = shipped(slower.plan);
    const SimulatedCall call{.bytes = 1 << 20, .spans = true};
    Machine other = machine;
    other.*slower.parameter *= slower.factor;
    const Simulation predicted = simulate(plan, call, machine), measured = simulate(plan, call, other);
    const Comparison itself = compare(plan, call.bytes, predicted.spans, Clocks::one, predicted.spans);
    EXPECT_TRUE(itself.only_measured.empty() && itself.only_predicted.empty());
    for (const ComparedLine& line : itself.lines) EXPECT_EQ(line.gap_ns(), 0) << line.place.name;
    const Comparison found = compare(plan, call.bytes, measured.spans, Clocks::one, predicted.spans);
    EXPECT_GT(found.measured_ns, found.predicted_ns);
    ASSERT_FALSE(found.lines.empty());
    EXPECT_EQ(found.lines[0].place.name, std::string_view(slower.operation));
    EXPECT_GT(found.lines[0].gap_ns(), 0);
  }
}

/// Returns a plan with semaphores and barriers, which no shipped plan has.
Plan meeting() {
  Plan plan = two_ranks();
  add(block(plan, 0, 0), Opcode::sem_release, {}, {}, {0});
  add(block(plan, 0, 1), Opcode::sem_acquire, {}, {}, {0});
  for (const uint32_t id : {0u, 1u}) add(block(plan, 0, id), Opcode::barrier, {}, {}, {0}).participants = 2;
  return plan;
}

TEST(ShippedPlans, EveryParameterHasAnEffect) {
  const Machine machine = h200();
  std::vector<Plan> plans = {meeting()};
  for (const char* const name :
       {"allgather_ring_4", "allreduce_two_shot_4", "allreduce_one_shot_b16_4", "allreduce_all_pairs_b64_4",
        "alltoall_by_port_4", "allgather_packets_4", "reducescatter_direct_b64_2", "allreduce_staged_b64_4"})
    plans.push_back(shipped(name));
  const auto times = [&](const Machine& of) {
    std::vector<double> all;
    for (const Plan& plan : plans) {
      for (const uint64_t bytes : {uint64_t(4096), uint64_t(1) << 28}) {
        for (const bool eager : {false, true})
          all.push_back(simulate(plan, {.bytes = bytes, .dtype = DType::bf16, .eager = eager}, of).ns);
      }
      const SimulatedCall ll8{.bytes = 4096, .dtype = DType::bf16, .packet = PacketForm::ll8};
      all.push_back(simulate(plan, ll8, of).ns);
    }
    return all;
  };
  const std::vector<double> as_is = times(machine);
  const auto expect_change = [&](const char* name, double Machine::*parameter, double factor) {
    Machine other = machine;
    other.*parameter = other.*parameter * factor + (factor > 1 ? 1000 : 0);
    EXPECT_NE(times(other), as_is) << name;
  };
#define CHORALE_NS(name, summary) expect_change(#name "_ns", &Machine::name##_ns, 2);
#define CHORALE_GB_S(name, summary) expect_change(#name "_gb_s", &Machine::name##_gb_s, 0.02);
#define CHORALE_COUNT(name, summary) expect_change(#name, &Machine::name, 0.2);
#include "chorale/machine.def"
}

}  // namespace
}  // namespace chorale
