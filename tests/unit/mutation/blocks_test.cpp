// These tests have operators that change how the threads and the thread blocks of a rank wait for each other.

#include "mutants.hpp"

namespace chorale::mutation {
namespace {

Plan copies() {
  Plan plan = empty_plan();
  add(block(plan), Opcode::copy, {in(0)}, {scratch(0)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::copy, {scratch(0)}, {out(0)});
  return plan;
}

Plan barriers() {
  Plan plan = empty_plan();
  for (uint32_t id = 0; id < 2; ++id) add(block(plan, 0, id), Opcode::barrier, {}, {}, {3}).participants = 2;
  return plan;
}

Plan semaphores() {
  Plan plan = empty_plan();
  plan.gpus[1].semaphores.clear();
  add(block(plan), Opcode::sem_release, {}, {}, {0, 2});
  add(block(plan, 0, 1), Opcode::sem_acquire, {}, {}, {2});
  return plan;
}

TEST(Operator, drop_nop) {
  EXPECT_EQ(mutants("drop_nop", copies()), R"(
- 0.0 nop
)");
}

TEST(Operator, late_nop) {
  EXPECT_EQ(mutants("late_nop", copies()), R"(
- 0.0 nop
+ 0.0 nop
)");
}

TEST(Operator, drop_nop_in_a_pipeline) {
  Plan plan = empty_plan();
  loop(plan, 2);
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::copy, {in(1)}, {out(1)});
  EXPECT_EQ(mutants("drop_nop", plan), R"(
- 0.0 pipeline over 1 chunk in units of 64 bytes: the next 2 operations
+ 0.0 pipeline over 1 chunk in units of 64 bytes: the next 1 operation
- 0.0   nop
)");
  EXPECT_EQ(mutants("late_nop", plan), "\n") << "what follows is behind the pipeline";
}

TEST(Operator, drop_barrier) {
  EXPECT_EQ(mutants("drop_barrier", barriers()), R"(
- 0.0 barrier 3, with 2 thread blocks

- 0.1 barrier 3, with 2 thread blocks
)");
}

TEST(Operator, barrier_count) {
  EXPECT_EQ(mutants("barrier_count", barriers()), R"(
- 0.0 barrier 3, with 2 thread blocks
- 0.1 barrier 3, with 2 thread blocks
+ 0.0 barrier 3, with 1 thread block
+ 0.1 barrier 3, with 1 thread block
)");
}

TEST(Operator, barrier_wrong_id) {
  EXPECT_EQ(mutants("barrier_wrong_id", barriers()), R"(
- 0.0 barrier 3, with 2 thread blocks
+ 0.0 barrier 2, with 2 thread blocks

- 0.1 barrier 3, with 2 thread blocks
+ 0.1 barrier 2, with 2 thread blocks
)");
}

TEST(Operator, semaphore_init) {
  EXPECT_EQ(mutants("semaphore_init", semaphores(),
                    [](const Plan& plan) {
                      std::string text;
                      for (const int64_t value : plan.gpus[0].semaphores) text += std::to_string(value);
                      return text + "\n";
                    }),
            R"(
100

010

001
)");
}

TEST(Operator, drop_acquire) {
  EXPECT_EQ(mutants("drop_acquire", semaphores()), R"(
- 0.1 sem_acquire semaphore 2
)");
}

TEST(Operator, drop_release) {
  EXPECT_EQ(mutants("drop_release", semaphores()), R"(
- 0.0 sem_release semaphore 0, semaphore 2
+ 0.0 sem_release semaphore 2

- 0.0 sem_release semaphore 0, semaphore 2
+ 0.0 sem_release semaphore 0
)");
}

TEST(Operator, drop_block) {
  EXPECT_EQ(mutants("drop_block", semaphores()), R"(
- 0.0 sem_release semaphore 0, semaphore 2

- 0.1 sem_acquire semaphore 2
)");
}

TEST(Operator, move_to_other_block) {
  EXPECT_EQ(mutants("move_to_other_block", copies()), R"(
- 0.0 copy input[0:1] -> scratch[0:1]
+ 0.1 copy input[0:1] -> scratch[0:1]

- 0.0 copy scratch[0:1] -> output[0:1]
+ 0.1 copy scratch[0:1] -> output[0:1]
)");
  // The other block has other lists.
  Plan plan = empty_plan();
  add(block(plan), Opcode::put, {in(0)}, {at(2, 0)}, {1}, ChannelType::port);
  block(plan, 0, 1).channels = {{ChannelType::port, {0}}};
  block(plan, 0, 1).remote_buffers.clear();
  EXPECT_EQ(mutants("move_to_other_block", plan), R"(
- 0.0 put input[0:1] -> scratch[0:1] of rank 1 through rank 1 (port channel 1)
+ 0.1 put input[0:1] -> scratch[0:1] of rank 1 through rank 1 (port channel 1)
)");
}

}  // namespace
}  // namespace chorale::mutation
