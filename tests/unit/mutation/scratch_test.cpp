// These tests have operators that change scratch, and the packets in it.

#include "mutants.hpp"

namespace chorale::mutation {
namespace {

using enum ChannelType;

/// Rank 0 sends two chunks as packets, which rank 1 receives.
Plan packets() {
  Plan plan = empty_plan();
  plan.use_double_scratch_buffer = true;
  for (uint64_t chunk = 0; chunk < 2; ++chunk) {
    add(block(plan), Opcode::put_packets, {in(chunk)}, {at(2, chunk)}, {}, memory);
    add(block(plan, 1), Opcode::unpack_packets, {scratch(chunk)}, {out(chunk)});
  }
  return plan;
}

TEST(Operator, no_double_scratch) {
  EXPECT_EQ(mutants("no_double_scratch", packets(),
                    [](const Plan& plan) { return plan.use_double_scratch_buffer ? "double" : "single"; }),
            "\nsingle");
  EXPECT_EQ(mutants("no_double_scratch", empty_plan()), "\n");
}

TEST(Operator, ignore_flag) {
  EXPECT_EQ(mutants("ignore_flag", packets()), R"(
- 1.0 unpack_packets scratch[0:1] as packets -> output[0:1]
+ 1.0 copy scratch[0:1] -> output[0:1]

- 1.0 unpack_packets scratch[1:2] as packets -> output[1:2]
+ 1.0 copy scratch[1:2] -> output[1:2]
)");
  Plan plan = empty_plan();
  add(block(plan), Opcode::read_put_packets, {scratch(0)}, {at(2, 0)}, {}, memory);
  add(block(plan), Opcode::reduce_packets, {in(0), scratch(0)}, {out(0)});
  EXPECT_EQ(mutants("ignore_flag", plan), R"(
- 0.0 read_put_packets scratch[0:1] as packets -> scratch[0:1] of rank 1 (memory)
+ 0.0 put_packets scratch[0:1] -> scratch[0:1] of rank 1 (memory)

- 0.0 reduce_packets sum input[0:1], scratch[0:1] as packets -> output[0:1]
+ 0.0 reduce sum input[0:1], scratch[0:1] -> output[0:1]
)");
}

TEST(Operator, plain_for_packets) {
  Plan plan = packets();
  add(block(plan, 1), Opcode::copy_packets, {in(0)}, {scratch(3)});
  EXPECT_EQ(mutants("plain_for_packets", plan), R"(
- 0.0 put_packets input[0:1] -> scratch[0:1] of rank 1 (memory)
+ 0.0 put input[0:1] -> scratch[0:1] of rank 1 (memory)

- 0.0 put_packets input[1:2] -> scratch[1:2] of rank 1 (memory)
+ 0.0 put input[1:2] -> scratch[1:2] of rank 1 (memory)

- 1.0 copy_packets input[0:1] -> scratch[3:4] as packets
+ 1.0 copy input[0:1] -> scratch[3:4]
)");
}

TEST(Operator, alias_scratch) {
  EXPECT_EQ(mutants("alias_scratch", packets()), R"(
- 0.0 put_packets input[1:2] -> scratch[1:2] of rank 1 (memory)
+ 0.0 put_packets input[1:2] -> scratch[0:1] of rank 1 (memory)
- 1.0 unpack_packets scratch[1:2] as packets -> output[1:2]
+ 1.0 unpack_packets scratch[0:1] as packets -> output[1:2]
)");
}

TEST(Operator, share_scratch) {
  EXPECT_EQ(mutants("share_scratch", packets()), R"(
- 0.0 put_packets input[1:2] -> scratch[1:2] of rank 1 (memory)
+ 0.0 put_packets input[2:3] -> scratch[2:3] of rank 1 (memory)
+ 0.1 put_packets input[1:2] -> scratch[0:1] of rank 1 (memory)
+ 0.1 put_packets input[3:4] -> scratch[2:3] of rank 1 (memory)
- 1.0 unpack_packets scratch[1:2] as packets -> output[1:2]
+ 1.0 unpack_packets scratch[2:3] as packets -> output[2:3]
+ 1.1 unpack_packets scratch[0:1] as packets -> output[1:2]
+ 1.1 unpack_packets scratch[2:3] as packets -> output[3:4]
)");
  Plan plan = empty_plan();
  for (Gpu& gpu : plan.gpus) gpu.chunks[2] = 0;
  EXPECT_EQ(mutants("share_scratch", plan), "\n");
}

TEST(Operator, other_half) {
  EXPECT_EQ(mutants("other_half", packets(),
                    [](const Plan& plan) { return std::to_string(plan.gpus[0].chunks[2]) + " chunks\n"; }),
            R"(
- 0.0 put_packets input[0:1] -> scratch[0:1] of rank 1 (memory)
- 0.0 put_packets input[1:2] -> scratch[1:2] of rank 1 (memory)
+ 0.0 put_packets input[0:1] -> scratch[8:9] of rank 1 (memory)
+ 0.0 put_packets input[1:2] -> scratch[9:10] of rank 1 (memory)
16 chunks

- 1.0 unpack_packets scratch[0:1] as packets -> output[0:1]
- 1.0 unpack_packets scratch[1:2] as packets -> output[1:2]
+ 1.0 unpack_packets scratch[8:9] as packets -> output[0:1]
+ 1.0 unpack_packets scratch[9:10] as packets -> output[1:2]
16 chunks
)");
}

}  // namespace
}  // namespace chorale::mutation
