// These tests check accesses of thread block groups, whose members each take a share.

#include <utility>

#include "tests/has.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

using test::has;

TEST(Races, GroupsWithoutAShareOfThePackets) {
  // Block 1 of rank 1 has read scratch of rank 0 when it sends its share of a chunk. In a short message it
  // has no share, and in any message of two chunks it has one. Block 0 of rank 0 receives that share, or
  // both.
  const auto share = [](Op& op, uint32_t member) {
    op.group_index = member;
    op.group_size = 2;
  };
  for (const uint64_t chunks : {1u, 2u}) {
    for (const bool both : {false, true}) {
      Plan plan = two_ranks();
      copy(plan, in(0), scratch(0), 0, 0);
      control(plan, Opcode::signal, 0, 0, 0);
      control(plan, Opcode::wait, 0, 1, 1);
      add(block(plan, 1, 1), Opcode::get, {at(2, 0)}, {out(0)}, {0}, ChannelType::memory);
      nop(plan, 1, 1);
      for (uint32_t member = 0; member < 2; ++member) {
        share(add(block(plan, 1, member), Opcode::put_packets, {in(0, chunks)}, {at(2, 2, chunks)}, {},
                  ChannelType::memory),
              member);
        if (both && member) continue;
        Op& unpack = add(block(plan, 0, both ? 0 : 1 - member), Opcode::unpack_packets, {scratch(2, chunks)},
                         {out(0, chunks)});
        if (!both) share(unpack, member);
      }
      nop(plan, 0, 0);
      copy(plan, in(1), scratch(0), 0);
      EXPECT_EQ(races(plan).empty(), chunks == 2) << races(plan);
      EXPECT_EQ(has(races(plan), "found for a message whose chunks are 1 x the alignment"), chunks == 1);
      // This holds unless the plan takes no message so short: the longest packets have 112 bytes.
      plan.min_message_size = plan.gpus[0].chunks[0] * 112;
      EXPECT_EQ(races(plan).empty(), chunks == 2) << races(plan);
      ++plan.min_message_size;
      EXPECT_EQ(races(plan), "");
    }
  }
}

TEST(Races, PacketsThatAreSharedInTwoWays) {
  Plan plan = two_ranks();
  const auto share = [](Op& op, uint32_t member, uint32_t of) {
    op.group_index = member;
    op.group_size = of;
  };
  for (uint32_t member = 0; member < 2; ++member) {
    share(
        add(block(plan, 1, member), Opcode::put_packets, {in(0, 3)}, {at(2, 0, 3)}, {}, ChannelType::memory),
        member, 2);
  }
  add(block(plan, 0, 0), Opcode::unpack_packets, {scratch(0)}, {out(0)});
  add(block(plan, 0, 1), Opcode::unpack_packets, {scratch(1, 2)}, {out(1, 2)});
  EXPECT_TRUE(has(found("decidable", plan), "other operations share these packets in another way"))
      << found("decidable", plan);
}

TEST(Races, GroupsShareAnOperand) {
  Plan plan = two_ranks();
  const auto slice = [&](const Operand& from, const Operand& to, uint32_t member, uint32_t of) {
    Op& op = add(block(plan, 0, member), Opcode::copy, {from}, {to});
    op.group_index = member;
    op.group_size = of;
  };
  for (uint32_t member = 0; member < 2; ++member) slice(in(0, 3), scratch(0, 3), member, 2);
  for (uint32_t on = 0; on < 2; ++on) nop(plan, 0, on);
  for (uint32_t member = 0; member < 2; ++member) slice(scratch(0, 3), out(0, 3), member, 2);
  EXPECT_EQ(races(plan), "");
  // The bytes are the same if all come out even, but the message decides which block has the middle chunk.
  plan = two_ranks();
  for (uint32_t member = 0; member < 2; ++member) slice(in(0, 3), scratch(0, 3), member, 2);
  for (uint32_t on = 0; on < 2; ++on) nop(plan, 0, on);
  copy(plan, scratch(0), out(0), 0);
  EXPECT_NE(races(plan), "");
}

/// Two blocks fill a chunk of scratch together, and then all three take a third each. If `told` is false,
/// they do so before a barrier has synchronised them.
Plan halves_and_thirds(bool told) {
  Plan plan = two_ranks();
  std::vector<ThreadBlock>& blocks = plan.gpus[0].threadblocks;
  blocks.push_back(blocks[1]);
  blocks[2].id = 2;
  for (const uint32_t group : {2u, 3u}) {
    for (uint32_t on = 0; on < 3; ++on) {
      if (on < group) {
        Op& op = add(block(plan, 0, on), Opcode::copy, {group == 2 ? in(0) : scratch(0)},
                     {group == 2 ? scratch(0) : out(0)});
        op.group_index = on;
        op.group_size = group;
      }
      if (group == 2 && (told || on == 2))
        control(plan, Opcode::barrier, 0, 0, on).participants = told ? 3 : 1;
    }
  }
  return plan;
}

TEST(Races, MembersOfAGroupHaveTheirOwn) {
  EXPECT_EQ(races(halves_and_thirds(true)), "");
  EXPECT_TRUE(has(races(halves_and_thirds(false)), "reads scratch[0:1] of rank 0, which another"));
  // Both halves come before a third that is taken.
  for (const uint32_t silent : {0u, 1u}) {
    Plan plan = halves_and_thirds(false);
    for (uint32_t on = 0; on < 3; ++on) {
      ThreadBlock& of = block(plan, 0, on);
      if (on < 2) of.ops.pop_back();
      if (on != silent) control(plan, on < 2 ? Opcode::sem_release : Opcode::sem_acquire, 0, 0, on);
    }
    std::swap(block(plan, 0, 2).ops[1], block(plan, 0, 2).ops[2]);
    EXPECT_TRUE(has(races(plan), "reads scratch[0:1] of rank 0, which another operation overwrites"));
  }
  // All overwrite it when only one of the readers has signalled that it is done.
  Plan plan = halves_and_thirds(true);
  control(plan, Opcode::sem_release, 0, 0, 1);
  control(plan, Opcode::sem_acquire, 0, 0, 0);
  copy(plan, in(1), scratch(0), 0);
  EXPECT_TRUE(has(races(plan), "overwrites scratch[0:1] of rank 0, which another operation reads"));
  Plan all = halves_and_thirds(true);
  for (uint32_t on = 0; on < 3; ++on) control(all, Opcode::barrier, 1, 0, on).participants = 3;
  copy(all, in(1), scratch(0), 0);
  EXPECT_EQ(races(all), "");
}

/// Two pairs of blocks fill a chunk of scratch each, and then all four take both chunks. If `told` is false,
/// they do so before a barrier has synchronised them.
Plan pairs_and_all(bool told) {
  Plan plan = two_ranks();
  add_blocks(plan, 4);
  for (uint32_t on = 0; on < 4; ++on) {
    Op& fill = add(block(plan, 0, on), Opcode::copy, {in(on / 2)}, {scratch(on / 2)});
    fill.group_index = on % 2;
    fill.group_size = 2;
    if (told) control(plan, Opcode::barrier, 0, 0, on).participants = 4;
    Op& take = add(block(plan, 0, on), Opcode::copy, {scratch(0, 2)}, {out(0, 2)});
    take.group_index = on;
    take.group_size = 4;
  }
  return plan;
}

TEST(Races, SlicesOfSeveralGroupsMayBeTheSameByChance) {
  EXPECT_EQ(races(pairs_and_all(true)), "");
  EXPECT_TRUE(has(races(pairs_and_all(false)), "reads scratch[0:2] of rank 0, which another"));
}

TEST(Races, ATurnMayBeTheSliceOfAGroupByChance) {
  // If a chunk has two turns, each is as long as the share of a block of the group.
  Plan plan = two_ranks();
  for (uint32_t on = 0; on < 2; ++on) {
    Op& op = add(block(plan, 0, on), Opcode::copy, {in(0)}, {scratch(0)});
    op.group_index = on;
    op.group_size = 2;
  }
  sync(plan);
  loop(plan, 1);
  copy(plan, scratch(0), out(0), 0);
  for (uint32_t on = 0; on < 2; ++on) control(plan, Opcode::barrier, 1, 0, on).participants = 2;
  loop(plan, 1);
  copy(plan, in(1), scratch(0), 0);
  EXPECT_EQ(races(plan), "");
}

}  // namespace
}  // namespace chorale
