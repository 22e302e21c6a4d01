// These tests have operators that change operations on data as a whole.

#include "mutants.hpp"

namespace chorale::mutation {
namespace {

Plan reduction() {
  Plan plan = empty_plan();
  add(block(plan), Opcode::reduce, {in(0), scratch(0), scratch(1)}, {out(0)});
  add(block(plan), Opcode::copy, {out(0)}, {out(1)});
  return plan;
}

Plan reduction_of_two() {
  Plan plan = empty_plan();
  add(block(plan), Opcode::read_reduce, {in(0), at(0, 0)}, {out(0)}, {}, ChannelType::memory);
  return plan;
}

TEST(Operator, duplicate_addend) {
  EXPECT_EQ(mutants("duplicate_addend", reduction()), R"(
- 0.0 reduce sum input[0:1], scratch[0:1], scratch[1:2] -> output[0:1]
+ 0.0 reduce sum input[0:1], scratch[0:1], scratch[1:2], scratch[1:2] -> output[0:1]
)");
}

TEST(Operator, drop_addend) {
  EXPECT_EQ(mutants("drop_addend", reduction()), R"(
- 0.0 reduce sum input[0:1], scratch[0:1], scratch[1:2] -> output[0:1]
+ 0.0 reduce sum input[0:1], scratch[0:1] -> output[0:1]
)");
  EXPECT_EQ(mutants("drop_addend", reduction_of_two()), R"(
- 0.0 read_reduce sum input[0:1], input[0:1] of rank 1 -> output[0:1] (memory)
+ 0.0 copy input[0:1] -> output[0:1]
)");
}

TEST(Operator, duplicate_reduction) {
  EXPECT_EQ(mutants("duplicate_reduction", reduction()), R"(
+ 0.0 reduce sum input[0:1], scratch[0:1], scratch[1:2] -> output[0:1]
)");
}

TEST(Operator, drop_data) {
  EXPECT_EQ(mutants("drop_data", reduction()), R"(
- 0.0 reduce sum input[0:1], scratch[0:1], scratch[1:2] -> output[0:1]

- 0.0 copy output[0:1] -> output[1:2]
)");
}

TEST(Operator, wrong_reduction) {
  EXPECT_EQ(mutants("wrong_reduction", reduction()), R"(
- 0.0 reduce sum input[0:1], scratch[0:1], scratch[1:2] -> output[0:1]
+ 0.0 reduce max input[0:1], scratch[0:1], scratch[1:2] -> output[0:1]
)");
}

TEST(Operator, reorder_data) {
  EXPECT_EQ(mutants("reorder_data", reduction()), R"(
- 0.0 reduce sum input[0:1], scratch[0:1], scratch[1:2] -> output[0:1]
+ 0.0 reduce sum input[0:1], scratch[0:1], scratch[1:2] -> output[0:1]
)");
}

TEST(Operator, split_operation) {
  Plan plan = empty_plan();
  add(block(plan), Opcode::copy, {in(0, 2)}, {out(4, 2)});
  EXPECT_EQ(mutants("split_operation", plan), R"(
- 0.0 copy input[0:2] -> output[4:6]
+ 0.0 copy input[0:1] -> output[4:5]
+ 0.0 copy input[1:2] -> output[5:6]
)");
  EXPECT_EQ(mutants("split_operation", reduction_of_two()), R"(
+ 0.0 read_reduce sum input[1:2], input[1:2] of rank 1 -> output[1:2] (memory)
)");
}

}  // namespace
}  // namespace chorale::mutation
