// These tests have operators that change signals over channels.

#include <utility>

#include "mutants.hpp"

namespace chorale::mutation {
namespace {

using enum ChannelType;

/// Returns a plan in which rank 0 waits until it may put, puts and signals. Rank 1 is the other side.
Plan exchange() {
  Plan plan = empty_plan();
  add(block(plan), Opcode::wait, {}, {}, {0}, memory);
  add(block(plan), Opcode::put, {in(0)}, {at(1, 2)}, {}, memory);
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::signal, {}, {}, {0}, memory);
  add(block(plan, 1), Opcode::signal, {}, {}, {0}, memory);
  add(block(plan, 1), Opcode::wait, {}, {}, {0}, memory);
  return plan;
}

/// Returns a plan with one operation of rank 0.
Plan alone(Opcode code, std::vector<uint32_t> ids, ChannelType via = memory) {
  Plan plan = empty_plan();
  add(block(plan), code, {}, {}, std::move(ids), via);
  return plan;
}

Plan put_with_signal() {
  Plan plan = empty_plan();
  add(block(plan), Opcode::put_with_signal, {in(0)}, {at(1, 2)}, {1}, port);
  return plan;
}

TEST(Operator, drop_wait) {
  EXPECT_EQ(mutants("drop_wait", exchange()), R"(
- 0.0 wait rank 1 (memory channel 0)

- 1.0 wait rank 0 (memory channel 0)
)");
  EXPECT_EQ(mutants("drop_wait", alone(Opcode::relaxed_wait, {0, 1})), R"(
- 0.0 relaxed_wait rank 1 (memory channel 0), rank 1 (memory channel 1)
+ 0.0 relaxed_wait rank 1 (memory channel 1)

- 0.0 relaxed_wait rank 1 (memory channel 0), rank 1 (memory channel 1)
+ 0.0 relaxed_wait rank 1 (memory channel 0)
)");
}

TEST(Operator, drop_signal) {
  EXPECT_EQ(mutants("drop_signal", exchange()), R"(
- 0.0 signal rank 1 (memory channel 0)

- 1.0 signal rank 0 (memory channel 0)
)");
  EXPECT_EQ(mutants("drop_signal", put_with_signal()), R"(
- 0.0 put_with_signal input[0:1] -> output[2:3] of rank 1, then signals rank 1 (port channel 1)
+ 0.0 put input[0:1] -> output[2:3] of rank 1 through rank 1 (port channel 1)
)");
}

TEST(Operator, signal_before_put) {
  EXPECT_EQ(mutants("signal_before_put", exchange()), R"(
+ 0.0 signal rank 1 (memory channel 0)
- 0.0 signal rank 1 (memory channel 0)
)");
  EXPECT_EQ(mutants("signal_before_put", put_with_signal()), R"(
- 0.0 put_with_signal input[0:1] -> output[2:3] of rank 1, then signals rank 1 (port channel 1)
+ 0.0 signal rank 1 (port channel 1)
+ 0.0 put input[0:1] -> output[2:3] of rank 1 through rank 1 (port channel 1)
)");
}

TEST(Operator, data_before_wait) {
  EXPECT_EQ(mutants("data_before_wait", exchange()), R"(
- 0.0 wait rank 1 (memory channel 0)
+ 0.0 wait rank 1 (memory channel 0)
)");
}

TEST(Operator, signal_wrong_channel) {
  EXPECT_EQ(mutants("signal_wrong_channel", exchange()), R"(
- 0.0 signal rank 1 (memory channel 0)
+ 0.0 signal rank 1 (memory channel 1)

- 1.0 signal rank 0 (memory channel 0)
+ 1.0 signal rank 0 (memory channel 1)
)");
}

TEST(Operator, wait_wrong_channel) {
  EXPECT_EQ(mutants("wait_wrong_channel", exchange()), R"(
- 0.0 wait rank 1 (memory channel 0)
+ 0.0 wait rank 1 (memory channel 1)

- 1.0 wait rank 0 (memory channel 0)
+ 1.0 wait rank 0 (memory channel 1)
)");
}

TEST(Operator, relax_signal) {
  EXPECT_EQ(mutants("relax_signal", exchange()), R"(
- 0.0 signal rank 1 (memory channel 0)
+ 0.0 relaxed_signal rank 1 (memory channel 0)

- 1.0 signal rank 0 (memory channel 0)
+ 1.0 relaxed_signal rank 0 (memory channel 0)
)");
  EXPECT_EQ(mutants("relax_signal", alone(Opcode::signal, {0}, port)), "\n")
      << "ports have no relaxed signals";
}

TEST(Operator, relax_wait) {
  EXPECT_EQ(mutants("relax_wait", exchange()), R"(
- 0.0 wait rank 1 (memory channel 0)
+ 0.0 relaxed_wait rank 1 (memory channel 0)

- 1.0 wait rank 0 (memory channel 0)
+ 1.0 relaxed_wait rank 0 (memory channel 0)
)");
}

TEST(Operator, duplicate_signal) {
  EXPECT_EQ(mutants("duplicate_signal", exchange()), R"(
+ 0.0 signal rank 1 (memory channel 0)

+ 1.0 signal rank 0 (memory channel 0)
)");
}

TEST(Operator, duplicate_wait) {
  EXPECT_EQ(mutants("duplicate_wait", exchange()), R"(
+ 0.0 wait rank 1 (memory channel 0)

+ 1.0 wait rank 0 (memory channel 0)
)");
}

TEST(Operator, drop_exit_sync) {
  Plan plan = exchange();
  add(block(plan), Opcode::signal, {}, {}, {1, 0}, memory);
  add(block(plan, 1, 1), Opcode::wait, {}, {}, {0}, memory);
  EXPECT_EQ(mutants("drop_exit_sync", plan), R"(
- 0.0 signal rank 1 (memory channel 1), rank 1 (memory channel 0)
+ 0.0 signal rank 1 (memory channel 1)
- 1.1 wait rank 0 (memory channel 0)

- 0.0 wait rank 1 (memory channel 0)
- 1.0 signal rank 0 (memory channel 0)
)");
}

TEST(Operator, drop_entry_sync) {
  Plan plan = exchange();
  add(block(plan), Opcode::signal, {}, {}, {1, 0}, memory);
  add(block(plan, 1, 1), Opcode::wait, {}, {}, {0}, memory);
  EXPECT_EQ(mutants("drop_entry_sync", plan), R"(
- 0.0 signal rank 1 (memory channel 0)
- 1.0 wait rank 0 (memory channel 0)

- 0.0 wait rank 1 (memory channel 0)
- 1.0 signal rank 0 (memory channel 0)
)");
}

TEST(Operator, release_to_device) {
  EXPECT_EQ(mutants("release_to_device", exchange(),
                    [](const Plan& plan) {
                      return std::to_string(plan.gpus[0].semaphores.size()) + " semaphores, " +
                             std::to_string(plan.gpus[1].semaphores.size()) + " of the peer\n";
                    }),
            R"(
- 0.0 signal rank 1 (memory channel 0)
+ 0.0 sem_release semaphore 3
+ 0.0 sem_acquire semaphore 3
+ 0.0 relaxed_signal rank 1 (memory channel 0)
4 semaphores, 3 of the peer

- 1.0 signal rank 0 (memory channel 0)
+ 1.0 sem_release semaphore 3
+ 1.0 sem_acquire semaphore 3
+ 1.0 relaxed_signal rank 0 (memory channel 0)
3 semaphores, 4 of the peer
)");
}

TEST(Operator, wait_before_signal) {
  Plan plan = exchange();
  add(block(plan, 1), Opcode::signal, {}, {}, {1}, memory);
  EXPECT_EQ(mutants("wait_before_signal", plan), R"(
- 1.0 signal rank 0 (memory channel 0)
+ 1.0 signal rank 0 (memory channel 0)
)");
}

}  // namespace
}  // namespace chorale::mutation
