/// \file
/// These tests check what pipelines are lowered to.

#include <gtest/gtest.h>

#include "executor/lowering/steps.hpp"
#include "recorded.hpp"

namespace chorale {
namespace {

using namespace lowering;

/// Copies five chunks in turns of 32 bytes.
Plan in_turns() {
  Plan plan = two_wholes();
  Op& loop = add(block(plan), Opcode::pipeline);
  loop.unit_bytes = 32;
  loop.chunks = 5;
  loop.body = 2;
  add(block(plan), Opcode::copy, {in(0, 5)}, {out(0, 5)});
  add(block(plan), Opcode::nop);
  add(block(plan), Opcode::copy, {in(6)}, {out(6)});
  return plan;
}

TEST(Lower, unrolls_pipelines) {
  const auto steps = Recorded(in_turns(), 128, LowerOptions().page_bytes, 0, 0).steps();
  ASSERT_EQ(steps.size(), 7u);
  for (uint32_t turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(steps[2 * turn].step.op, 1u);
    EXPECT_EQ(steps[2 * turn].plain[0].at, ProgramPlace::in + turn * 32);
    EXPECT_EQ(steps[2 * turn].step.bytes, turn == 2 ? 16u : 32u);
    EXPECT_EQ(steps[2 * turn + 1].step.kind, ProgramStepKind::sync);
  }
  EXPECT_EQ(steps[6].step.op, 3u);
  EXPECT_EQ(steps[6].plain[0].at, ProgramPlace::in + 96);
}

TEST(Lower, keeps_turns_that_are_alike_as_a_loop) {
  const Recorded of(in_turns(), 8 * 112);  // 17 turns of 32 bytes, and one of 16
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 6u);  // `repeat` synchronises the block, so no sync is before it
  EXPECT_EQ(steps[0].step.kind, ProgramStepKind::loop);
  EXPECT_EQ(steps[0].step.op, 0u);
  EXPECT_EQ(steps[1].step.kind, ProgramStepKind::copy);
  EXPECT_EQ(steps[1].step.bytes, 32u);
  EXPECT_EQ(steps[1].plain[0].at, ProgramPlace::in);
  EXPECT_EQ(steps[1].step.whole, 1);
  ASSERT_EQ(steps[2].step.kind, ProgramStepKind::repeat);
  EXPECT_EQ(steps[2].items[0].repeat.turns, 17u);
  EXPECT_EQ(steps[2].items[0].repeat.steps, 1u);
  EXPECT_EQ(steps[3].step.bytes, 16u);
  EXPECT_EQ(steps[3].plain[0].at, ProgramPlace::in + 17 * 32);
  EXPECT_EQ(steps[5].plain[0].at, ProgramPlace::in + 6 * 112);
  const PageShape& shape = of.program.page;
  EXPECT_EQ(shape.strides, shape.plain + shape.packets);
  const auto* const strides = reinterpret_cast<const uint64_t*>(of.program.bytes.data() + shape.strides_at());
  EXPECT_EQ(strides[steps[1].step.first_plain], 32u);
  EXPECT_EQ(strides[steps[3].step.first_plain], 0u);
}

TEST(Lower, moves_turns_of_odd_sizes_slowly) {
  Plan plan = in_turns();
  block(plan).ops[0].unit_bytes = 24;  // the second turn begins at an odd address
  const auto steps = Recorded(plan, 8 * 112).steps();
  ASSERT_EQ(steps.at(0).step.kind, ProgramStepKind::loop);
  EXPECT_EQ(steps.at(1).step.bytes, 24u);
  EXPECT_EQ(steps.at(1).step.whole, 0);
}

TEST(Lower, unrolls_a_loop_that_is_larger_than_allowed) {
  const auto kind_with = [](uint64_t loop_bytes) {
    return Recorded(in_turns(), 8 * 112, LowerOptions().page_bytes, 0, loop_bytes).steps().at(0).step.kind;
  };
  EXPECT_EQ(kind_with(1 << 10), ProgramStepKind::loop);
  EXPECT_EQ(kind_with(1 << 8), ProgramStepKind::copy);
}

/// Makes a copy of 64 bytes whose places advance by their strides in 10 turns.
RecordedStep copy_in_turns(uint64_t from, uint64_t from_stride, uint64_t to, uint64_t to_stride) {
  RecordedStep step;
  step.step.kind = ProgramStepKind::copy;
  step.step.bytes = 64;
  step.step.whole = 1;
  step.step.plain_sinks = 1;
  step.plain = {{from, 0, 64}, {to, 0, 64}};
  step.plain_strides = {from_stride, to_stride};
  step.turns = 10;
  return step;
}

TEST(Lower, batches_no_steps_that_meet_in_a_later_turn) {
  const auto batch = [](const RecordedStep& a, const RecordedStep& b) { return batch_from({a, b}, 0, 2); };
  constexpr uint64_t fixed = 1 << 20, moving = 2 << 20;
  EXPECT_EQ(batch(copy_in_turns(moving, 64, fixed, 0), copy_in_turns(moving + 4096, 64, fixed + 64, 0)), 2);
  // The first one writes a place that stays, which the second one's source reaches in its fifth turn.
  EXPECT_EQ(batch(copy_in_turns(moving, 64, fixed, 0), copy_in_turns(fixed - 256, 64, moving + 4096, 64)), 1);
  // Places that advance together never meet.
  EXPECT_EQ(batch(copy_in_turns(fixed, 0, moving, 64), copy_in_turns(moving + 64, 64, fixed + 64, 0)), 2);
  // A place that moves backwards counts as if it were everywhere.
  EXPECT_EQ(batch(copy_in_turns(moving, 64, fixed, 0), copy_in_turns(fixed + 640, -64ull, moving + 4096, 64)),
            1);
}

TEST(Lower, makes_programs_whose_size_does_not_grow_with_the_message) {
  const size_t small = Recorded(in_turns(), 8 * 1024).program.bytes.size();
  EXPECT_EQ(Recorded(in_turns(), 8 << 20).program.bytes.size(), small);
  EXPECT_GT(Recorded(in_turns(), 8 * 1024, LowerOptions().page_bytes, 0, 0).program.bytes.size(), small);
}

TEST(Lower, puts_a_loop_on_one_page) {
  const Recorded of(in_turns(), 8 * 112, 1);
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 6u);
  for (const size_t at : {1, 2}) EXPECT_EQ(steps[at].page, steps[0].page);
  EXPECT_GT(steps[3].page, steps[0].page);
}

/// The last chunk of the message has 4 bytes, so the turn with these bytes is not part of the loop.
TEST(Lower, ends_a_loop_where_data_end) {
  Plan plan = two_wholes();
  Op& loop = add(block(plan), Opcode::pipeline);
  loop.unit_bytes = 32;
  loop.chunks = 8;
  loop.body = 1;
  add(block(plan), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  const auto steps = Recorded(plan, 8 * 128 - 92).steps();
  ASSERT_EQ(steps.size(), 4u);
  ASSERT_EQ(steps[2].step.kind, ProgramStepKind::repeat);
  EXPECT_EQ(steps[2].items[0].repeat.turns, 29u);  // 932 bytes exist: 29 turns, and 4 bytes
  EXPECT_EQ(steps[3].step.whole, 0);
  EXPECT_EQ(steps[3].plain[0].valid, 4u);
}

}  // namespace
}  // namespace chorale
