// These tests check that blocks which do the same as others, elsewhere, are proved together with them. The
// findings must be those of the whole plan.

#include "compiler/proof/excerpts/copies.hpp"

#include "chorale/rewrites.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

constexpr uint32_t instances = 4;

/// Returns a plan of two ranks, each with the thread blocks of four instances of `rank`'s program.
template <class Program>
Plan instances_of(const char* collective, uint64_t in, uint64_t out, const Program& program) {
  Plan plan = two_ranks();
  plan.collective = collective;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    plan.gpus[rank].chunks[0] = in;
    plan.gpus[rank].chunks[1] = out;
    plan.gpus[rank].threadblocks.pop_back();
    program(plan, rank);
  }
  pass::replicate(plan, {.instances = instances});
  return plan;
}

/// A rank puts its input into the peer's scratch, and adds what it receives.
void put_and_add(Plan& plan, uint32_t rank) {
  add(block(plan, rank), Opcode::put, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  control(plan, Opcode::signal, 0, rank);
  control(plan, Opcode::wait, 0, rank);
  add(block(plan, rank), Opcode::reduce, {in(0), scratch(0)}, {out(0)});
  control(plan, Opcode::signal, 0, rank);
  control(plan, Opcode::wait, 0, rank);
}

Plan all_reduce() { return instances_of("allreduce", 1, 1, put_and_add); }

/// Returns how many thread blocks are kept; 0 if there are no copies.
size_t kept(const Plan& plan, bool one_storage = false) {
  const auto excerpt = proof::leave_out_copies(plan, proof::Storage(plan, one_storage));
  size_t blocks = 0;
  for (uint32_t rank = 0; excerpt && rank < plan.ranks(); ++rank)
    blocks += excerpt->plan.gpus[rank].threadblocks.size();
  return blocks;
}

/// Returns the findings. They must be the same as in the whole plan, from which facts are made.
std::string all_found(const Plan& plan) {
  const std::string text = render(plan, prove_plan(plan).diagnostics());
  EXPECT_EQ(text, render(plan, prove_plan(plan, {}, true).diagnostics()));
  return text;
}

Operand& operand(Plan& plan, uint32_t rank, uint32_t on, uint32_t op, uint32_t position) {
  ThreadBlock& of = block(plan, rank, on);
  return of.operands[of.ops[op].first_operand + position];
}

/// A copy that reads encoded data has to decode them.
TEST(Copies, Codecs) {
  Plan plan = all_reduce();
  plan.extension.codecs = {{CodecFormat::int8, 64}};
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint32_t on = 0; on < instances; ++on)
      operand(plan, rank, on, 0, 1).codec = operand(plan, rank, on, 3, 1).codec = 1;
  EXPECT_EQ(kept(plan), 2u);
  EXPECT_EQ(all_found(plan), "");
  Plan one = plan;
  operand(one, 1, 2, 3, 1).codec = 0;
  EXPECT_NE(all_found(one).find("reads scratch[2:3] of rank 1 as plain elements"), std::string::npos);
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint32_t on = 0; on < instances; ++on) operand(plan, rank, on, 3, 1).codec = 0;
  EXPECT_NE(all_found(plan).find("as plain elements, but it holds int8 in blocks of 64"), std::string::npos);
}

TEST(Copies, OneInstanceStandsForAll) {
  const Plan plan = all_reduce();
  EXPECT_EQ(kept(plan), 2u);
  EXPECT_EQ(all_found(plan), "");
}

TEST(Copies, InPlace) {
  Plan plan = all_reduce();
  plan.inplace = true;
  EXPECT_EQ(kept(plan, true), 2u);
  EXPECT_EQ(all_found(plan), "");
  Plan gather = instances_of("allgather", 1, 2, [](Plan& of, uint32_t rank) {
    control(of, Opcode::signal, 0, rank);
    control(of, Opcode::wait, 0, rank);
    add(block(of, rank), Opcode::put, {in(0)}, {at(1, rank)}, {}, ChannelType::memory);
    control(of, Opcode::signal, 0, rank);
    control(of, Opcode::wait, 0, rank);
  });
  EXPECT_NE(all_found(gather), "");  // no rank copies its own part
  gather.inplace = true;
  EXPECT_EQ(kept(gather, true), 2u);
  EXPECT_EQ(all_found(gather), "");
}

TEST(Copies, WhatDiffersIsKept) {
  Plan plan = all_reduce();
  block(plan, 1, 2).ops[3].reduce_op = ReduceOp::max;
  EXPECT_EQ(kept(plan), 4u);
  EXPECT_NE(all_found(plan).find("is made with the operator"), std::string::npos);
}

TEST(Copies, OneInstanceIsWrong) {
  Plan plan = all_reduce();
  std::swap(block(plan, 1, 2).ops[1], block(plan, 1, 2).ops[2]);  // waits first
  std::swap(block(plan, 0, 2).ops[1], block(plan, 0, 2).ops[2]);
  EXPECT_NE(all_found(plan).find("[deadlock]"), std::string::npos);
  plan = all_reduce();
  block(plan, 0, 3).ops.clear();
  block(plan, 1, 3).ops.clear();
  EXPECT_NE(all_found(plan).find("output[3:4] of rank 0 is never written"), std::string::npos);
}

TEST(Copies, HaveOperandsOfTheSameSize) {
  Plan plan = all_reduce();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (uint64_t& chunks : plan.gpus[rank].chunks) ++chunks;
    for (Operand& operand : block(plan, rank, 3).operands) operand.size = 2;
  }
  plan.gpus[0].chunks[2] = plan.gpus[1].chunks[2] = 8;
  EXPECT_EQ(kept(plan), 4u);
  EXPECT_EQ(all_found(plan), "");
}

// The second channel is posted twice, and the first one never.
TEST(Copies, UseTheirChannelsAlike) {
  Plan plan = instances_of("allreduce", 1, 1, [](Plan& of, uint32_t rank) {
    add(block(of, rank), Opcode::put, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
    for (const uint32_t round : {0u, 1u}) {
      for (const uint32_t channel : {0u, 1u}) control(of, Opcode::signal, channel, rank);
      for (const uint32_t channel : {0u, 1u}) control(of, Opcode::wait, channel, rank);
      if (round == 0) add(block(of, rank), Opcode::reduce, {in(0), scratch(0)}, {out(0)});
    }
  });
  EXPECT_EQ(kept(plan), 2u);
  EXPECT_EQ(all_found(plan), "");
  ThreadBlock& odd = block(plan, 1, 2);
  odd.ids[odd.ops[1].first_id] = 1;
  EXPECT_EQ(kept(plan), 4u);
  EXPECT_NE(all_found(plan).find("[deadlock]"), std::string::npos);
}

// Each of the two is right alone.
TEST(Copies, WhoOverwritesWhatOthersTouchBelongsToThem) {
  Plan plan = all_reduce();
  operand(plan, 0, 2, 3, 2) = out(1);
  EXPECT_EQ(kept(plan), 0u);
  EXPECT_NE(all_found(plan), "");
  plan = all_reduce();
  operand(plan, 0, 2, 3, 1) = scratch(1);  // reads it only
  EXPECT_EQ(kept(plan), 0u);
  EXPECT_NE(all_found(plan), "");
}

// Two instances give each other's result. Each is the same as the others, except for the destination.
TEST(Copies, InputsAndOutputsAreMovedAlike) {
  Plan plan = all_reduce();
  for (uint32_t rank = 0; rank < 2; ++rank)
    std::swap(operand(plan, rank, 1, 3, 2), operand(plan, rank, 2, 3, 2));
  EXPECT_EQ(kept(plan), 0u);
  EXPECT_NE(all_found(plan).find("[values]"), std::string::npos);
}

// No other block uses the scratch.
TEST(Copies, ScratchIsMovedByAnyNumber) {
  Plan plan = all_reduce();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    operand(plan, rank, 1, 3, 1) = scratch(7);
    operand(plan, 1 - rank, 1, 0, 1) = at(2, 7);
  }
  EXPECT_EQ(kept(plan), 2u);
  EXPECT_EQ(all_found(plan), "");
}

// An operand is right for the peer's segment, but wrong for the rank's own.
TEST(Copies, SegmentsAreNotLeft) {
  Plan plan = two_ranks();
  plan.collective = "alltoall";
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const ThreadBlock model = block(plan, rank);
    plan.gpus[rank].threadblocks.assign(8, model);
    // The first one is right, and so are half of the others.
    for (uint32_t on = 0; on < 8; ++on) {
      const uint32_t chunk = (on + 4 * rank) % 8;
      add(block(plan, rank, on), Opcode::copy, {in(chunk)}, {out(chunk)});
    }
  }
  EXPECT_EQ(kept(plan), 4u);
  EXPECT_NE(all_found(plan).find("[values]"), std::string::npos);
}

// Each rank's counters start again in each instance, and are part of what identifies it.
TEST(Copies, SemaphoresBeginAlike) {
  const auto program = [](Plan& plan, uint32_t rank) {
    plan.gpus[rank].threadblocks.push_back(plan.gpus[rank].threadblocks[0]);
    block(plan, rank, 1).id = 1;
    add(block(plan, rank), Opcode::copy, {in(0)}, {scratch(0)});
    add(block(plan, rank), Opcode::sem_release, {}, {}, {0});
    add(block(plan, rank, 1), Opcode::sem_acquire, {}, {}, {0});
    add(block(plan, rank, 1), Opcode::copy, {scratch(0)}, {out(rank)});
    add(block(plan, rank, 1), Opcode::put, {scratch(0)}, {at(1, rank)}, {}, ChannelType::memory);
    control(plan, Opcode::signal, 0, rank, 1);
    control(plan, Opcode::wait, 0, rank, 1);
  };
  Plan plan = instances_of("allgather", 1, 2, program);
  EXPECT_EQ(kept(plan), 4u);
  const std::string early = all_found(plan);
  EXPECT_NE(early.find("[races]"), std::string::npos);  // nothing says that the peer has begun
  plan.gpus[0].semaphores[2] = 1;
  EXPECT_EQ(kept(plan), 8u);
  all_found(plan);
}

TEST(Copies, BlocksThatCompeteAreLookedAtAsAWhole) {
  Plan plan = instances_of("allreduce", 1, 1, [](Plan& of, uint32_t rank) {
    for (uint32_t on = 1; on < 3; ++on) {
      of.gpus[rank].threadblocks.push_back(of.gpus[rank].threadblocks[0]);
      block(of, rank, on).id = on;
      add(block(of, rank, on), Opcode::sem_acquire, {}, {}, {0});
      add(block(of, rank), Opcode::sem_release, {}, {}, {0});
    }
    put_and_add(of, rank);
  });
  EXPECT_EQ(kept(plan), 6u);
  EXPECT_NE(all_found(plan).find("[decidable]"), std::string::npos);
}

TEST(Copies, CustomCollectivesAreProvedAsAWhole) {
  Plan plan = all_reduce();
  plan.collective = "mine";
  EXPECT_EQ(kept(plan), 0u);
}

}  // namespace
}  // namespace chorale
