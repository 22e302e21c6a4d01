/// \file
/// These tests check which steps are whole, and what becomes of the others.

#include <gtest/gtest.h>

#include "executor/lowering/steps.hpp"
#include "recorded.hpp"

namespace chorale {
namespace {

using namespace lowering;

TEST(Lower, splits_tails_off) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  const Recorded of(plan, 12804);  // chunks of 1616 bytes, the last of 1492
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].step.bytes, 12800u);
  EXPECT_EQ(steps[0].step.whole, 1);
  EXPECT_EQ(steps[0].step.passed, 3);
  EXPECT_EQ(steps[1].step.bytes, 4u);
  EXPECT_EQ(steps[1].step.whole, 0);
  EXPECT_EQ(steps[1].plain[0].at, ProgramPlace::in + 12800);
  EXPECT_EQ(steps[1].plain[1].at, ProgramPlace::out + 12800);
  EXPECT_EQ(steps[1].plain[0].valid, 4u);
  EXPECT_FALSE(of.program.whole);
}

TEST(Lower, keeps_the_tails_of_short_exchanges) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy_packets, {in(0, 8)}, {scratch(0, 8)});
  const Recorded of(plan, 100);  // chunks of 16 bytes, the seventh of 4
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step.bytes, 128u);
  EXPECT_EQ(steps[0].step.whole, 0);
  EXPECT_EQ(steps[0].plain[0].valid, 100u);
  EXPECT_TRUE(of.program.exchange);
  EXPECT_FALSE(of.program.whole);
  EXPECT_TRUE(Recorded(plan, 128).program.whole);
  // A block that signals is no exchange, and runs whole units faster.
  add(block(plan), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  EXPECT_FALSE(Recorded(plan, 100).program.exchange);
  // A thread has several units of a long message.
  Plan long_one = two_wholes();
  add(block(long_one), Opcode::copy_packets, {in(0, 8)}, {scratch(0, 8)});
  EXPECT_TRUE(Recorded(long_one, 12800).program.exchange);
  EXPECT_FALSE(Recorded(long_one, 12804).program.exchange);
  EXPECT_EQ(Recorded(plan, 100).steps().at(1).step.bytes, 32u);
}

TEST(Lower, splits_the_tails_of_packets_off_with_their_data) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy_packets, {in(0, 8)}, {scratch(0, 8)});
  const auto steps = Recorded(plan, 12804).steps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].packets[0].at - steps[0].packets[0].at, 2 * 12800u);
}

TEST(Lower, pads_the_last_lines_of_exchanges) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy_packets, {in(0, 8)}, {scratch(0, 8)});
  const auto of = [&plan](uint64_t bytes) {
    return Recorded(plan, layout_of(plan, bytes, DType::i32, PacketForm::ll128), LowerOptions().page_bytes, 0,
                    LowerOptions().loop_bytes, PacketForm::ll128);
  };
  for (const uint64_t bytes : {uint64_t{1024}, uint64_t{1} << 20}) {
    const Recorded padded = of(bytes);
    const auto steps = padded.steps();
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].step.bytes % packet_payload<LL128>, 0u);
    EXPECT_GT(steps[0].step.bytes, bytes);
    EXPECT_EQ(steps[0].step.whole, 1);
    EXPECT_EQ(steps[0].plain[0].valid, bytes);
    EXPECT_TRUE(padded.program.exchange);
    EXPECT_TRUE(padded.program.whole);
  }
  const Recorded split = of(1028);
  ASSERT_EQ(split.steps().size(), 2u);
  EXPECT_EQ(split.steps()[0].step.bytes, 9 * packet_payload<LL128>);
  EXPECT_EQ(split.steps()[1].step.whole, 0);
  EXPECT_FALSE(split.program.exchange);
}

TEST(Lower, copies_no_padding_beside_lines) {
  // A copy of a part that no peer sends has no lines, but its chunks are as long as those of the lines beside
  // it.
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy_packets, {in(0, 8)}, {scratch(0, 8)});
  add(block(plan), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  const Recorded of(plan, layout_of(plan, 1024, DType::i32, PacketForm::ll128), LowerOptions().page_bytes, 0,
                    LowerOptions().loop_bytes, PacketForm::ll128);
  const auto steps = of.steps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_GT(steps[0].step.bytes, 1024u);
  EXPECT_EQ(steps[1].step.bytes, 1024u);
  EXPECT_TRUE(of.program.whole);
  EXPECT_TRUE(of.program.exchange);
}

TEST(Lower, splits_lines_whose_places_have_different_ends) {
  RecordedStep step;
  step.step.kind = ProgramStepKind::unpack;
  step.step.bytes = 5 * packet_payload<LL128>;
  step.step.plain_sinks = 2;
  step.packets = {{4096, 0, 0}};
  step.plain = {{8192, 0, 464}, {16384, 0, 464}};
  std::vector<RecordedStep> alike{step};
  mark_whole(alike, PacketForm::ll128, false);
  EXPECT_EQ(alike.size(), 1u);
  step.plain[1].valid = unlimited;
  std::vector<RecordedStep> different{step};
  mark_whole(different, PacketForm::ll128, false);
  ASSERT_EQ(different.size(), 2u);
  EXPECT_EQ(different[0].step.bytes, 4 * packet_payload<LL128>);
  EXPECT_EQ(different[1].plain[0].valid, 464 - 4 * packet_payload<LL128>);
}

TEST(Lower, splits_nothing_where_nothing_is_missing) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  const auto steps = Recorded(plan, 128).steps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step.bytes, 128u);
  EXPECT_EQ(steps[0].step.whole, 1);
}

TEST(Lower, leaves_odd_addresses_to_the_slow_way) {
  Plan plan = two_wholes();
  add(block(plan), Opcode::put, {in(0)}, {at(1, 0)}, {0}, ChannelType::memory);
  EXPECT_EQ(Recorded(plan, 128).steps().at(0).step.whole, 1);
  EXPECT_EQ(Recorded(plan, 128, LowerOptions().page_bytes, 4).steps().at(0).step.whole, 0);
}

}  // namespace
}  // namespace chorale
