// These tests check what instances share and what they do not. D5 and D10 are faults of MSCCL++'s compiler
// that the rewrite must not have.

#include "chorale/rewrites.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;

TEST(Replicate, D5AndD10MovesEveryOperandOnce) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(1, 2)}, {out(0, 2)});
  add(block(plan), switch_broadcast, {in(1)}, {at(0, 1)}, {}, switched);
  add(block(plan), switch_broadcast, {in(1)}, {at(0, 2)}, {}, switched);
  add(block(plan), reduce_copy_packets, {in(0), scratch(1)}, {in(0), scratch(2)});
  add(block(plan), sem_release, {}, {}, {1});
  add(block(plan), barrier, {}, {}, {3}).participants = 2;
  add(block(plan, 0, 1), barrier, {}, {}, {3}).participants = 2;
  after(pass::replicate, plan, {.instances = 2});
  const Gpu& gpu = plan.gpus[0];
  EXPECT_EQ(gpu.chunks[2], 16u);
  EXPECT_EQ(gpu.threadblocks.size(), 4u);
  EXPECT_EQ(gpu.semaphores.size(), 6u);
  EXPECT_EQ(gpu.channels[0].connected_to, (std::vector<uint32_t>{1, 1, 1, 1}));
  EXPECT_EQ(gpu.channels.size(), 6u);
  EXPECT_EQ(gpu.threadblocks[1].channels[0].ids, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(gpu.threadblocks[1].remote_buffers[0].ids, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(plan.extension.input_segments, 8u);
  const ThreadBlock& second = gpu.threadblocks[1];
  EXPECT_EQ(second.sources(second.ops[0])[0], in(4, 2));
  EXPECT_EQ(second.dests(second.ops[0])[0], out(2, 2));
  EXPECT_EQ(second.sources(second.ops[1])[0], in(3));
  EXPECT_EQ(second.sources(second.ops[2])[0], in(3));
  EXPECT_EQ(second.dests(second.ops[2])[0], at(0, 5));
  EXPECT_EQ(second.dests(second.ops[3])[1], scratch(5));
  EXPECT_EQ(second.op_ids(second.ops[4])[0], 3u);
  EXPECT_EQ(second.op_ids(second.ops[5])[0], 7u);
}

TEST(Replicate, NoneIsOneInstance) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {out(0)});
  const std::string before = write(plan);
  EXPECT_FALSE(pass::replicate(plan, {.instances = 4, .replication = ReplicationPolicy::none}));
  EXPECT_EQ(write(plan), before);
}

TEST(Replicate, ChunksTogetherAndOneByOne) {
  // Rank 0 puts two chunks together, and rank 1 takes them one by one. Instances cut these in different
  // places.
  Plan plan = two_ranks();
  add(block(plan), Opcode::put, {in(0, 2)}, {at(2, 0, 2)}, {}, ChannelType::memory);
  add(block(plan), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  add(block(plan, 1), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  for (uint64_t chunk = 0; chunk < 2; ++chunk)
    add(block(plan, 1), Opcode::copy, {scratch(chunk)}, {out(chunk)});
  Plan two = plan;
  const Diagnostics findings = compile(two, {.instances = 2, .allow = {"replay"}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(
      findings[0].help,
      "each instance takes an equal share of every operand, and of these two one has 2 and one 1 chunks: "
      "name the chunks together in both, or one by one in both, so that instances do not overlap");
  EXPECT_EQ(all_texts(compile(plan, {.allow = {"replay"}})), "");
}

TEST(Replicate, ChunksThatOverlapInPart) {
  // Rank 0 puts chunks 0 and 1, and 2 and 3, and rank 1 takes 1 and 2.
  Plan plan = two_ranks();
  add(block(plan), Opcode::put, {in(0, 2)}, {at(2, 0, 2)}, {}, ChannelType::memory);
  add(block(plan), Opcode::put, {in(2, 2)}, {at(2, 2, 2)}, {}, ChannelType::memory);
  add(block(plan), Opcode::signal, {}, {}, {0}, ChannelType::memory);
  add(block(plan, 1), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  add(block(plan, 1), Opcode::copy, {scratch(1, 2)}, {out(0, 2)});
  Plan two = plan;
  const Diagnostics findings = compile(two, {.instances = 2, .allow = {"replay"}});
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].help,
            "each instance takes an equal share of every operand, and of these two one is [0:2] and "
            "one [1:3] of the program: name the same chunks in both, or chunks that do not overlap, so that "
            "instances do not overlap either");
  EXPECT_EQ(all_texts(compile(plan, {.allow = {"replay"}})), "");
}

}  // namespace
}  // namespace chorale
