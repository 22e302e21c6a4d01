// These tests check the effect of a launch on data that an earlier launch still reads.

#include "tests/has.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

using test::has;

TEST(Replay, ScratchIsUsedAgain) {
  // Rank 0 may be a launch ahead of rank 1, which still reads what was put.
  Plan plan = two_ranks();
  put(plan, in(0), 2, 0);
  hand_over(plan, 0);
  copy(plan, scratch(0), out(0), 0, 1);
  EXPECT_EQ(races(plan), "");
  EXPECT_EQ(replay(plan),
            "this overwrites scratch[0:1] of rank 1, which an earlier launch reads: nothing orders the "
            "two at 0.0.0\n"
            "  the other operation is here at 1.0.1\n");
  hand_over(plan, 1);
  EXPECT_EQ(replay(plan), "");
}

TEST(Replay, TwoBanksAreOneLaunchMore) {
  // Each rank hears from the other once per launch, which is too late with one bank.
  Plan plan = two_ranks();
  for (uint32_t rank = 0; rank < 2; ++rank) put(plan, in(0), 2, 0, rank);
  for (uint32_t rank = 0; rank < 2; ++rank) control(plan, Opcode::signal, 0, rank);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    control(plan, Opcode::wait, 0, rank);
    copy(plan, scratch(0), out(0), 0, rank);
  }
  EXPECT_EQ(races(plan), "");
  EXPECT_TRUE(has(replay(plan), "overwrites scratch[0:1] of rank 1, which an earlier launch reads"));
  plan.use_double_scratch_buffer = true;
  EXPECT_EQ(replay(plan), "");
}

TEST(Replay, PacketsOfWhoHearsNothing) {
  // Rank 1 never answers: rank 0 overwrites packets before they are read.
  Plan plan = two_ranks();
  add(block(plan), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  add(block(plan, 1), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  EXPECT_EQ(races(plan), "");
  EXPECT_TRUE(
      has(replay(plan), "overwrites packets of scratch[0:1] of rank 1, which an earlier launch reads"));
  add(block(plan, 1), Opcode::put_packets, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  add(block(plan), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  EXPECT_EQ(replay(plan), "");
}

}  // namespace
}  // namespace chorale
