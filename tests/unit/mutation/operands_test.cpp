// These tests have operators that change the memory that an operation on data touches.

#include "mutants.hpp"

namespace chorale::mutation {
namespace {

using enum ChannelType;

/// Returns one put of rank 0, from the end of its input.
Plan put(uint64_t size = 1) {
  Plan plan = empty_plan();
  add(block(plan), Opcode::put, {in(8 - size, size)}, {at(1, 2, size)}, {}, memory);
  return plan;
}

/// Returns a plan of three ranks: those of empty_plan(), and a third one like rank 1.
Plan three_ranks() {
  Plan plan = put();
  plan.gpus.push_back(plan.gpus[1]);
  plan.gpus[2].id = 2;
  return plan;
}

TEST(Operator, wrong_source) {
  EXPECT_EQ(mutants("wrong_source", put()), R"(
- 0.0 put input[7:8] -> output[2:3] of rank 1 (memory)
+ 0.0 put input[6:7] -> output[2:3] of rank 1 (memory)
)");
}

TEST(Operator, wrong_destination) {
  EXPECT_EQ(mutants("wrong_destination", put()), R"(
- 0.0 put input[7:8] -> output[2:3] of rank 1 (memory)
+ 0.0 put input[7:8] -> output[3:4] of rank 1 (memory)
)");
  Plan whole = empty_plan();
  add(block(whole), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  EXPECT_EQ(mutants("wrong_destination", whole), "\n") << "there is no other";
}

TEST(Operator, wrong_peer) {
  EXPECT_EQ(mutants("wrong_peer", put()), "\n") << "there is no other";
  EXPECT_EQ(mutants("wrong_peer", three_ranks()), R"(
- 0.0 put input[7:8] -> output[2:3] of rank 1 (memory)
+ 0.0 put input[7:8] -> output[2:3] of rank 2 (memory)
)");
}

TEST(Operator, wrong_remote_buffer) {
  EXPECT_EQ(mutants("wrong_remote_buffer", put()), R"(
- 0.0 put input[7:8] -> output[2:3] of rank 1 (memory)
+ 0.0 put input[7:8] -> scratch[2:3] of rank 1 (memory)
)");
}

/// Returns put() to the peer's scratch, encoded, in a plan with two codecs.
Plan coded_put() {
  Plan plan = empty_plan();
  plan.extension.codecs = {{CodecFormat::fp8_e4m3, 128}, {CodecFormat::int8, 64}};
  add(block(plan), Opcode::put, {in(7)}, {coded(at(2, 2))}, {}, ChannelType::memory);
  return plan;
}

TEST(Operator, drop_codec) {
  EXPECT_EQ(mutants("drop_codec", coded_put()), R"(
- 0.0 put input[7:8] -> scratch[2:3] of rank 1 by codec 0 (memory)
+ 0.0 put input[7:8] -> scratch[2:3] of rank 1 (memory)
)");
  EXPECT_EQ(mutants("drop_codec", put()), "\n") << "nothing is encoded";
}

TEST(Operator, other_codec) {
  EXPECT_EQ(mutants("other_codec", coded_put()), R"(
- 0.0 put input[7:8] -> scratch[2:3] of rank 1 by codec 0 (memory)
+ 0.0 put input[7:8] -> scratch[2:3] of rank 1 by codec 1 (memory)
)");
}

TEST(Operator, halve_size) {
  const auto chunks = [](const Plan& plan) { return std::to_string(plan.gpus[1].chunks[1]) + " chunks\n"; };
  EXPECT_EQ(mutants("halve_size", put(4), chunks), R"(
- 0.0 put input[4:8] -> output[2:6] of rank 1 (memory)
+ 0.0 put input[4:6] -> output[2:4] of rank 1 (memory)
8 chunks
)");
  // Chunks are cut where there are no halves.
  EXPECT_EQ(mutants("halve_size", put(1), chunks), R"(
- 0.0 put input[7:8] -> output[2:3] of rank 1 (memory)
+ 0.0 put input[14:15] -> output[4:5] of rank 1 (memory)
16 chunks
)");
}

TEST(Operator, grow_size) {
  EXPECT_EQ(mutants("grow_size", put()), R"(
- 0.0 put input[7:8] -> output[2:3] of rank 1 (memory)
+ 0.0 put input[6:8] -> output[1:3] of rank 1 (memory)
)");
  Plan plan = empty_plan();
  add(block(plan), Opcode::copy, {in(0)}, {out(7)});
  EXPECT_EQ(mutants("grow_size", plan), "\n") << "one is at the beginning, the other at the end";
}

TEST(Operator, input_for_scratch) {
  Plan plan = empty_plan();
  plan.gpus[0].chunks[2] = 4;
  add(block(plan), Opcode::reduce, {in(6), scratch(1), out(0)}, {out(0)});
  EXPECT_EQ(mutants("input_for_scratch", plan), R"(
- 0.0 reduce sum input[6:7], scratch[1:2], output[0:1] -> output[0:1]
+ 0.0 reduce sum scratch[3:4], scratch[1:2], output[0:1] -> output[0:1]

- 0.0 reduce sum input[6:7], scratch[1:2], output[0:1] -> output[0:1]
+ 0.0 reduce sum input[6:7], input[1:2], output[0:1] -> output[0:1]
)");
}

TEST(Operator, swap_destinations) {
  Plan plan = empty_plan();
  add(block(plan), Opcode::copy, {in(0)}, {out(0)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::copy, {in(1)}, {out(1)});
  add(block(plan), Opcode::copy, {in(2, 2)}, {out(2, 2)});
  EXPECT_EQ(mutants("swap_destinations", plan), R"(
- 0.0 copy input[0:1] -> output[0:1]
+ 0.0 copy input[0:1] -> output[1:2]
- 0.0 copy input[1:2] -> output[1:2]
+ 0.0 copy input[1:2] -> output[0:1]
)");
}

}  // namespace
}  // namespace chorale::mutation
