// These tests check which message sizes the proof must examine, and how memory is divided there.

#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

/// Adds a pipeline of a block of rank 0.
void turns(Plan& plan, uint32_t on, uint32_t unit, uint64_t chunks, uint32_t body) {
  Op& op = append(block(plan, 0, on), Opcode::pipeline, {}, {});
  op.unit_bytes = unit;
  op.chunks = chunks;
  op.body = body;
}

/// Copies output 0 to the next two chunks, which takes a turn for each.
Plan spread() {
  Plan plan = two_ranks();
  plan.gpus.pop_back();
  plan.gpus[0].channels.clear();
  plan.gpus[0].remote_buffers.clear();
  for (ThreadBlock& block : plan.gpus[0].threadblocks) {
    block.channels.clear();
    block.remote_buffers.clear();
  }
  plan.gpus[0].chunks[0] = 1;
  plan.gpus[0].chunks[1] = 3;
  plan.collective = "custom";
  plan.extension.post = {{{{0, 0}}, {{0, 0}}, {{0, 0}}}};
  copy(plan, in(0), out(0));
  nop(plan);
  turns(plan, 0, 4096, 2, 4);
  copy(plan, out(0, 2), scratch(0, 2));
  nop(plan);
  copy(plan, scratch(0, 2), out(1, 2));
  nop(plan);
  return plan;
}

TEST(Messages, ChunksShorterThanAUnit) {
  // A short message's chunks are all in the first turn, which reads what the second one would read.
  EXPECT_NE(found("values", spread()), "");
  // This does not hold if the plan takes no short message.
  Plan plan = spread();
  plan.min_message_size = 4096;
  EXPECT_EQ(found("values", plan), "");
}

TEST(Messages, ChunksBetweenUnits) {
  // One block takes one turn where the other takes two, except in the shortest messages and in those of
  // two turns.
  const auto plan_of = [](uint32_t first, uint32_t second) {
    Plan plan = two_ranks();
    for (uint32_t on = 0; on < 2; ++on) {
      turns(plan, on, on ? second : first, 1, 1);
      control(plan, on ? Opcode::sem_acquire : Opcode::sem_release, 0, 0, on);
    }
    return plan;
  };
  EXPECT_EQ(found("deadlock", plan_of(64, 64)), "");
  EXPECT_NE(found("deadlock", plan_of(128, 64)), "");
}

TEST(Messages, TurnsOfLongPackets) {
  // The reader says that it takes a unit before it does. This is right if there is another turn before
  // the next launch, which is so if chunks have 80 bytes or more, and two of them more than a turn. But
  // in lines of 112 bytes a turn has 224, as two chunks have. If the plan sends packets, they may have
  // that form.
  for (const bool packets : {false, true}) {
    Plan plan = two_ranks();
    const auto loop = [&](uint32_t rank, uint32_t body) {
      Op& op = append(block(plan, rank), Opcode::pipeline, {}, {});
      op.unit_bytes = 128;
      op.chunks = 2;
      op.body = body;
    };
    if (packets) {
      add(block(plan), Opcode::put_packets, {in(4)}, {at(2, 4)}, {}, ChannelType::memory);
      add(block(plan, 1), Opcode::unpack_packets, {scratch(4)}, {out(4)});
      add(block(plan, 1), Opcode::nop);
    }
    loop(0, 3);
    add(block(plan), Opcode::put, {in(0, 2)}, {at(2, 0, 2)}, {}, ChannelType::memory);
    control(plan, Opcode::signal, 0, 0);
    control(plan, Opcode::wait, 0, 0);
    loop(1, 4);
    control(plan, Opcode::wait, 0, 1);
    control(plan, Opcode::signal, 0, 1);
    add(block(plan, 1), Opcode::copy, {scratch(0, 2)}, {out(0, 2)});
    add(block(plan, 1), Opcode::nop);
    EXPECT_NE(found("replay", plan), "");
    plan.min_message_size = plan.gpus[0].chunks[0] * 80;
    EXPECT_EQ(found("replay", plan).empty(), !packets) << found("replay", plan);
  }
}

TEST(Messages, BlocksThatRunAhead) {
  // Credits outside the pipelines let the writer run two turns ahead of the reader, and reach it one
  // chunk later.
  Plan plan = two_ranks();
  copy(plan, in(0, 3), scratch(0, 3));
  nop(plan);
  control(plan, Opcode::sem_release, 1, 0, 0);
  turns(plan, 0, 1024, 2, 2);
  copy(plan, scratch(0, 2), out(0, 2));
  control(plan, Opcode::sem_release, 0, 0, 0);
  for (int credit = 0; credit < 2; ++credit) control(plan, Opcode::sem_release, 0, 0, 0);
  control(plan, Opcode::sem_acquire, 1, 0, 1);
  for (int credit = 0; credit < 2; ++credit) control(plan, Opcode::sem_acquire, 0, 0, 1);
  turns(plan, 1, 1024, 2, 2);
  control(plan, Opcode::sem_acquire, 0, 0, 1);
  copy(plan, in(3, 2), scratch(1, 2), 1);
  EXPECT_NE(found("races", plan), "");
}

/// The first block writes after its pipeline what the last one reads in a pipeline. Each block is one
/// turn behind the previous one, with which it synchronises at a barrier, or whose semaphore it takes.
Plan turns_behind(uint32_t blocks, bool barriers) {
  Plan plan = two_ranks();
  plan.gpus[0].semaphores.assign(blocks, 0);
  add_blocks(plan, blocks);
  for (uint32_t on = 0; on < blocks; ++on) {
    const auto meet_before = [&] {
      if (on && barriers) control(plan, Opcode::barrier, on - 1, 0, on).participants = 2;
      if (on && !barriers) control(plan, Opcode::sem_acquire, on - 1, 0, on);
    };
    const auto meet_behind = [&] {
      if (on + 1 < blocks && barriers) control(plan, Opcode::barrier, on, 0, on).participants = 2;
      if (on + 1 < blocks && !barriers) control(plan, Opcode::sem_release, on, 0, on);
    };
    meet_before();
    turns(plan, on, 1024, 1, on ? 2 : 1);
    meet_before();
    meet_behind();
    if (on + 1 == blocks) copy(plan, scratch(0), out(0), on);
    if (!on) copy(plan, in(0), scratch(0), on);
    meet_behind();
  }
  return plan;
}

TEST(Messages, BlocksThatRunAheadOfThoseThatRunAhead) {
  for (const bool barriers : {false, true}) {
    for (const uint32_t blocks : {2u, 3u, 5u, 8u})
      EXPECT_NE(found("races", turns_behind(blocks, barriers)), "") << blocks << barriers;
  }
}

TEST(Messages, TurnsThatAreOrderedFromBothEnds) {
  // One block writes what another one reads in the same turn. The first turns are ordered because a
  // third block has taken their posts before its own pipeline. The last turns are ordered because a
  // fourth block posts for them after its own. Nothing orders the turns between them.
  Plan plan = two_ranks();
  plan.gpus[0].semaphores.assign(4, 0);
  add_blocks(plan, 4);
  const auto some = [&](Opcode code, uint32_t semaphore, uint32_t on) {
    for (int k = 0; k < 4; ++k) control(plan, code, semaphore, 0, on);
  };
  turns(plan, 0, 1024, 1, 2);
  copy(plan, in(0), scratch(0));
  control(plan, Opcode::sem_release, 0, 0, 0);
  some(Opcode::sem_release, 0, 0);
  control(plan, Opcode::sem_release, 1, 0, 0);

  some(Opcode::sem_acquire, 0, 2);
  control(plan, Opcode::sem_release, 2, 0, 2);
  turns(plan, 2, 1024, 1, 1);
  control(plan, Opcode::sem_acquire, 0, 0, 2);

  turns(plan, 3, 1024, 1, 1);
  control(plan, Opcode::sem_release, 3, 0, 3);
  control(plan, Opcode::sem_acquire, 1, 0, 3);
  some(Opcode::sem_release, 3, 3);

  control(plan, Opcode::sem_acquire, 2, 0, 1);
  some(Opcode::sem_acquire, 3, 1);
  turns(plan, 1, 1024, 1, 2);
  control(plan, Opcode::sem_acquire, 3, 0, 1);
  copy(plan, scratch(0), out(0), 1);
  EXPECT_EQ(found("deadlock", plan), "");
  EXPECT_NE(found("races", plan), "");
}

TEST(Messages, BlocksThatWaitATurnLater) {
  // Each block gives the next one a unit that it gets itself only before its next turn, and the first
  // block begins when the last one is done. So as many turns as blocks are too many.
  for (const bool packets : {false, true}) {
    for (const uint32_t blocks : {3u, 6u}) {
      Plan plan = two_ranks();
      plan.gpus[0].semaphores.assign(blocks, 0);
      add_blocks(plan, blocks);
      control(plan, Opcode::sem_acquire, blocks - 1, 0, 0);
      for (uint32_t on = 0; on < blocks; ++on) {
        turns(plan, on, 1024, 1, on && on + 1 < blocks ? 2 : 1);
        if (on + 1 < blocks && packets) add(block(plan, 0, on), Opcode::copy_packets, {in(0)}, {scratch(on)});
        if (on + 1 < blocks && !packets) control(plan, Opcode::sem_release, on, 0, on);
        if (on && packets) add(block(plan, 0, on), Opcode::unpack_packets, {scratch(on - 1)}, {out(on)});
        if (on && !packets) control(plan, Opcode::sem_acquire, on - 1, 0, on);
      }
      control(plan, Opcode::sem_release, blocks - 1, 0, blocks - 1);
      EXPECT_NE(found("deadlock", plan), "") << blocks << packets;
      // It is right if it takes only messages of fewer turns. Chunks of packets are rounded up.
      const uint64_t longest = 8 * 1024 * (blocks - 2);
      plan.max_message_size = longest - (packets ? 8 * 112 : 0);
      EXPECT_EQ(found("deadlock", plan), "") << blocks << packets;
      plan.max_message_size = longest + 1;
      EXPECT_NE(found("deadlock", plan), "") << blocks << packets;
    }
  }
}

TEST(Messages, PipelinesThatPostAndTakeInAnotherWay) {
  // One block posts in each turn of two pipelines. The other one takes in one pipeline, twice per
  // turn. So the second pipeline's first post is for the first turn if there is one, and for the
  // second if there are two.
  const auto plan_of = [](bool alike) {
    Plan plan = two_ranks();
    for (uint32_t pipeline = 0; pipeline < 2; ++pipeline) {
      turns(plan, 0, 1024, 1, 1);
      control(plan, Opcode::sem_release, 0, 0, 0);
    }
    for (uint32_t pipeline = 0; pipeline < (alike ? 2 : 1); ++pipeline) {
      turns(plan, 1, 1024, 1, alike ? 1 : 2);
      for (uint32_t take = 0; take < (alike ? 1 : 2); ++take) control(plan, Opcode::sem_acquire, 0, 0, 1);
    }
    return plan;
  };
  EXPECT_EQ(found("decidable", plan_of(true)), "");
  EXPECT_EQ(
      found("decidable", plan_of(false)),
      "this plan cannot be proved: what a turn of this pipeline waits for depends on how many turns there "
      "are, because the posts and the waits are not in corresponding pipelines, equally often per turn at "
      "0.1.1\n"
      "  the other end is here at 0.0.1\n");
}

TEST(Messages, TwoMemoriesWhereTheExecutorHasTwo) {
  // It makes one of the two only if they are equally large. With two, the first chunk of output stays
  // unchanged.
  for (const uint64_t chunks : {1u, 2u}) {
    Plan plan = spread();
    block(plan).ops.clear();
    plan.inplace = true;
    plan.gpus[0].chunks[0] = plan.gpus[0].chunks[1] = chunks;
    plan.gpus[0].chunks[0] = 1;
    plan.extension.post = {{{{0, 0}}}};
    if (chunks == 2) {
      plan.extension.post[0].push_back({{0, 0}});
      copy(plan, out(0), out(1));
    }
    EXPECT_EQ(found("values", plan).empty(), chunks == 1) << found("values", plan);
  }
}

TEST(Messages, InputOfPlansOutOfPlace) {
  Plan plan = spread();
  copy(plan, out(0), in(0));
  plan.min_message_size = 4096;
  EXPECT_EQ(
      found("values", plan),
      "this overwrites input[0:1] of rank 0, but the plan is not in place: the application's input must "
      "stay as it is at 0.0.7\n");
  // A plan of the collective "test" promises no result.
  plan.collective = "test";
  EXPECT_EQ(found("values", plan), "");
}

}  // namespace
}  // namespace chorale
