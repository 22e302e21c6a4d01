// These tests check the limits of MSCCL++'s executor. Each limit has its own check, and a plan just within it
// passes.

#include <stdexcept>

#include "target_found.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;

TEST(Target, OursHasNoChecks) {
  Plan plan = two_ranks();
  add(block(plan), flush, {}, {}, {0}, port);
  EXPECT_TRUE(target_checks(Target::chorale).empty());
  EXPECT_EQ(all_texts(check(plan, Target::chorale)), "");
}

TEST(Target, AllowLeavesOneCheckOut) {
  Plan plan = two_ranks();
  add(block(plan), flush, {}, {}, {0}, port);
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {in(0)}).reduce_op = ReduceOp::max;
  EXPECT_EQ(found(plan),
            "[mscclpp_flush] 'flush' waits for 1 port channel, but MSCCL++ waits for none\n"
            "[mscclpp_reduce_operator] 'reduce' has the operator max, but MSCCL++ computes a sum\n");
  EXPECT_EQ(found(plan, {"mscclpp_flush"}),
            "[mscclpp_reduce_operator] 'reduce' has the operator max, but MSCCL++ computes a sum\n");
  try {
    check(plan, Target::mscclpp, {"mscclpp_flus"});
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "there is neither a proof nor a check of the target mscclpp named 'mscclpp_flus', did you mean "
        "'mscclpp_flush'?");
  }
  try {
    check(plan, Target::chorale, {"pairing"});
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "the check 'pairing' cannot be left out: no executor runs a plan that fails it");
  }
}

TEST(Target, OneFindingForALine) {
  Plan plan = two_ranks();
  plan.source = {{"mine.cpp", 7}};
  for (const uint32_t rank : {0, 1}) add(block(plan, rank), flush, {}, {}, {rank}, port).at = 1;
  const Diagnostics findings = check(plan, Target::mscclpp);
  EXPECT_EQ(
      render(plan, findings),
      "mine.cpp:7: error: 'flush' waits for 1 port channel, but MSCCL++ waits for none [mscclpp_flush]\n"
      "  rank 0, thread block 0, op 0: flush rank 1 (port channel 0)\n"
      "help: use put_with_signal, and an acknowledgement by the peer\n1 error\n");
}

TEST(Target, BlockOperations) {
  Plan plan = two_ranks();
  for (int k = 0; k < 64; ++k) add(block(plan), nop);
  EXPECT_EQ(found(plan), "");
  add(block(plan), nop);
  EXPECT_EQ(
      found(plan),
      "[mscclpp_block_operations] thread block 0 of rank 0 has 65 operations, but MSCCL++ runs at most 64\n");
}

TEST(Target, Operands) {
  for (const uint64_t others : {9, 10}) {
    Plan plan = two_ranks();
    std::vector<Operand> sources{out(0)};
    for (uint64_t k = 0; k < others; ++k) sources.push_back(in(k % 8));
    add(block(plan), Opcode::reduce, sources, {out(0)});
    EXPECT_EQ(
        found(plan),
        others == 9
            ? ""
            : "[mscclpp_operands] 'reduce' has 11 sources, but MSCCL++ holds at most 10 per operation\n");
  }
}

TEST(Target, IdsOfAnOperation) {
  for (const uint32_t more : {0, 1}) {
    Plan plan = two_ranks();
    for (Gpu& gpu : plan.gpus) {
      gpu.channels[0].connected_to.assign(9, 1 - gpu.id);
      gpu.semaphores.assign(17, 0);
      for (ThreadBlock& block : gpu.threadblocks) block.channels[0].ids = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    }
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < 16 + more; ++id) ids.push_back(id);
    add(block(plan), sem_release, {}, {}, ids);
    ids.resize(8 + more);
    add(block(plan), signal, {}, {}, ids, memory);
    EXPECT_EQ(found(plan),
              more ? "[mscclpp_channels] 'signal' has 9 channels, but MSCCL++ holds at most 8 per operation\n"
                     "[mscclpp_semaphores] 'sem_release' has 17 semaphores, but MSCCL++ holds at most 16 per "
                     "operation\n"
                   : "");
  }
}

TEST(Target, TablesOfABlock) {
  for (const uint32_t more : {0, 1}) {
    Plan plan = two_ranks();
    for (Gpu& gpu : plan.gpus) {
      gpu.channels[0].connected_to.assign(17, 1 - gpu.id);
      while (gpu.remote_buffers.size() < 17) gpu.remote_buffers.push_back(gpu.remote_buffers[1]);
    }
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < 16 + more; ++id) ids.push_back(id);
    block(plan).channels[0].ids = ids;
    block(plan).remote_buffers[0].ids = ids;
    for (const uint32_t id : ids) {
      add(block(plan), relaxed_signal, {}, {}, {id}, memory);
      add(block(plan), put, {in(0)}, {at(id, 0)}, {}, memory);
    }
    const Diagnostics findings = check(plan, Target::mscclpp);
    EXPECT_EQ(
        all_texts(findings),
        more ? "[mscclpp_block_channels] thread block 0 of rank 0 has 17 memory channels, but MSCCL++ holds "
               "at most 16 per thread block\n"
               "[mscclpp_block_remote_buffers] thread block 0 of rank 0 reaches 17 remote buffers over "
               "memory channels, but MSCCL++ holds at most 16 per thread block\n"
             : "");
    if (more) {
      // The finding is at the operation with which the author exceeded the limit.
      EXPECT_EQ(findings[0].at->op, 32u);
      EXPECT_EQ(findings[1].at->op, 33u);
    }
  }
}

TEST(Target, Barriers) {
  Plan plan = two_ranks();
  const auto meet = [&](uint32_t id) {
    for (const uint32_t on : {0, 1}) add(block(plan, 0, on), barrier, {}, {}, {id}).participants = 2;
  };
  meet(15);
  EXPECT_EQ(found(plan), "");
  meet(16);
  const std::string text =
      "[mscclpp_barriers] this is barrier 16 of rank 0, but MSCCL++ has 16, numbers 0 to 15\n";
  EXPECT_EQ(found(plan), text + text);
}

TEST(Target, PortResources) {
  Plan plan = two_ranks();
  plan.gpus[0].channels[1].connected_to.assign(1025, 1);
  plan.gpus[0].remote_buffers.assign(510, plan.gpus[0].remote_buffers[0]);
  EXPECT_EQ(
      found(plan),
      "[mscclpp_port_resources] rank 0 has 1025 port channels, but MSCCL++ holds at most 1024\n"
      "[mscclpp_port_resources] rank 0 reaches 510 remote buffers over port channels, but MSCCL++ holds at "
      "most 509\n");
}

TEST(Target, ChunkCounts) {
  Plan plan = two_ranks();
  plan.gpus[0].chunks[1] = 0;
  plan.gpus[1].chunks[2] = uint64_t(1) << 32;
  EXPECT_EQ(
      found(plan),
      "[mscclpp_chunk_counts] the output of rank 0 has 0 chunks, but MSCCL++ needs at least 1: it divides by "
      "their number\n"
      "[mscclpp_chunk_counts] the scratch of rank 1 has 4294967296 chunks, but MSCCL++ counts to "
      "4294967295\n");
}

TEST(Target, MessageSizes) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(7)}, {out(0)});
  // A plan for messages of any size is not refused, although it is wrong from some size on.
  EXPECT_EQ(found(plan), "");
  EXPECT_EQ(largest_message(plan, Target::mscclpp), 8 * (UINT32_MAX / 8));
  EXPECT_EQ(largest_message(plan, Target::chorale), UINT64_MAX);
  Plan packets = plan;
  add(block(packets), put_packets, {in(0)}, {at(2, 3)}, {0}, memory);
  EXPECT_EQ(largest_message(packets, Target::mscclpp), 8 * (UINT32_MAX / 8));
  block(packets).operands.back().index = 4;
  EXPECT_EQ(largest_message(packets, Target::mscclpp), 8 * (UINT32_MAX / 10));
  packets.max_message_size = 1 << 20;
  EXPECT_EQ(largest_message(packets, Target::mscclpp), 1 << 20);
  plan.max_message_size = (uint64_t(1) << 32) - 8;
  EXPECT_EQ(found(plan), "");
  plan.min_message_size = plan.max_message_size = uint64_t(1) << 32;
  EXPECT_EQ(
      found(plan),
      "[mscclpp_message_sizes] the smallest message has 4294967296 bytes, but MSCCL++ reads at most "
      "2147483647\n"
      "[mscclpp_message_sizes] src of 'copy' ends 8 chunks of 536870912 bytes into its buffer, but MSCCL++ "
      "counts to 4294967295 bytes\n");
}

TEST(Target, Alignment) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {out(1)});
  EXPECT_EQ(found(plan), "");
  plan.buffer_alignment = 8;
  EXPECT_EQ(
      found(plan),
      "[mscclpp_alignment] the buffer alignment is 8 bytes, but MSCCL++ copies and reduces 16 bytes at a "
      "time, between places of equal remainder\n");
  plan.buffer_alignment = uint64_t(1) << 30;
  EXPECT_EQ(found(plan), "");
  plan.buffer_alignment *= 2;
  EXPECT_EQ(found(plan),
            "[mscclpp_alignment] the buffer alignment is 2147483648 bytes, but MSCCL++ reads at most "
            "2147483647\n");
}

TEST(Target, Turns) {
  Plan plan = two_ranks();
  pipeline_of(plan, 1);
  add(block(plan), copy, {in(0)}, {out(0)});
  plan.max_message_size = 8 * 64 * 65535;
  EXPECT_EQ(found(plan), "");
  plan.max_message_size += 8;
  EXPECT_EQ(found(plan),
            "[mscclpp_turns] this pipeline takes more than 65535 turns of 64 bytes for 1 chunk of 4194241 "
            "bytes, but "
            "MSCCL++ counts to 65535\n");
  plan.max_message_size = UINT64_MAX;  // then a message of 4 GiB counts
  EXPECT_NE(found(plan).find("for 1 chunk of 536870912 bytes"), std::string::npos) << found(plan);
  block(plan).ops[0].unit_bytes = 8208;  // 536870912 / 65535, and what is to the next 16
  EXPECT_EQ(found(plan), "");
}

TEST(Target, Pipelines) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  plan.max_message_size = 1 << 20;  // otherwise it has too many turns
  Op& outside = add(block(plan), copy, {in(0)}, {out(0)});
  outside.group_size = 2;
  pipeline_of(plan, 3);
  add(block(plan), copy, {in(0)}, {out(0)}).group_size = 2;
  add(block(plan), put_packets, {in(0, 2)}, {at(2, 0, 2)}, {}, memory);
  add(block(plan), Opcode::reduce, {out(0), scratch(0)}, {out(0)});
  EXPECT_EQ(
      found(plan),
      "[mscclpp_pipelined_groups] 'copy' of a pipeline is shared by 2 thread blocks, but MSCCL++ counts the "
      "turns of whole chunks and moves bytes after the slices\n"
      "[mscclpp_pipelined_packets] 'put_packets' of a pipeline moves packets, but MSCCL++ moves all of its 2 "
      "chunks in every turn\n");
  plan.reuse_resources = true;
  EXPECT_NE(
      found(plan).find("[mscclpp_pipelined_scratch] 'reduce' of a pipeline is between scratch and another"),
      std::string::npos);
}

TEST(Target, PipelineUnits) {
  Plan plan = two_ranks();
  plan.max_message_size = 1 << 20;
  pipeline_of(plan, 1);
  add(block(plan), copy, {in(0)}, {out(0)});
  for (const uint32_t bytes : {16, 48}) {
    block(plan).ops[0].unit_bytes = bytes;
    EXPECT_EQ(found(plan), "");
  }
  block(plan).ops[0].unit_bytes = 40;
  EXPECT_EQ(
      found(plan),
      "[mscclpp_pipeline_units] this pipeline goes on by units of 40 bytes, but MSCCL++ moves vectors of "
      "16 bytes and leaves out what is before the next one\n");
}

TEST(Target, PipelinedOperands) {
  Plan plan = two_ranks();
  plan.max_message_size = 1 << 20;
  pipeline_of(plan, 1);
  add(block(plan), copy, {in(0, 2)}, {out(0, 2)});
  block(plan).ops[0].chunks = 2;
  EXPECT_EQ(found(plan), "");
  block(plan).ops[0].chunks = 3;
  const auto text = [](const char* what) {
    return "[mscclpp_pipelined_operands] " + std::string(what) +
           " of 'copy' is 2 chunks in a pipeline over 3, but MSCCL++ goes on past the end of the operand\n";
  };
  EXPECT_EQ(found(plan), text("src") + text("dst"));
}

}  // namespace
}  // namespace chorale
