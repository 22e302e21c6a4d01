// The limits of MSCCL++'s executor and the shapes that it runs wrongly: each has a check of its own, and a
// plan just within it passes.

#include <stdexcept>

#include "helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
constexpr ChannelType memory = ChannelType::memory, port = ChannelType::port,
                      switched = ChannelType::switched;

/// What the target finds in a plan that the other checks accept.
std::string found(const Plan& plan, const std::vector<std::string>& allow = {}) {
  Diagnostics others;
  pass::structure(plan, others);
  pass::bounds(plan, others);
  EXPECT_EQ(all_texts(others), "");
  return all_texts(check(plan, Target::mscclpp, allow));
}

void pipeline_of(Plan& plan, uint32_t body) {
  Op& op = add(block(plan), pipeline);
  op.body = body;
  op.unit_bytes = 64;
  op.chunks = 1;
}

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
}

TEST(Target, OneFindingForALine) {
  Plan plan = two_ranks();
  plan.source = {{"mine.cpp", 7}};
  for (const uint32_t rank : {0, 1}) add(block(plan, rank), flush, {}, {}, {rank}, port).at = 1;
  const Diagnostics findings = check(plan, Target::mscclpp);
  EXPECT_EQ(
      render(plan, findings),
      "mine.cpp:7: error: 'flush' waits for 1 port channel, but MSCCL++ waits for none [mscclpp_flush]\n"
      "  rank 0, thread block 0, op 0: "
      "{\"name\":\"flush\",\"channel_ids\":[0],\"channel_type\":\"port\"}\n"
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
    EXPECT_EQ(found(plan), others == 9
                               ? ""
                               : "[mscclpp_operands] 'reduce' has 11 sources, but MSCCL++ holds at most "
                                 "10 of an operation\n");
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
    EXPECT_EQ(
        found(plan),
        more ? "[mscclpp_channels] 'signal' has 9 channels, but MSCCL++ holds at most 8 of an operation\n"
               "[mscclpp_semaphores] 'sem_release' has 17 semaphores, but MSCCL++ holds at most 16 of an "
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
               "at most 16 of a thread block\n"
               "[mscclpp_block_remote_buffers] thread block 0 of rank 0 reaches 17 remote buffers over "
               "memory channels, but MSCCL++ holds at most 16 of a thread block\n"
             : "");
    if (more) {
      // Where the author went past the limit.
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
  // Of any size: not refused, but it has one from which it is wrong.
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
  plan.max_message_size = UINT64_MAX;  // then one of 4 GiB counts
  EXPECT_NE(found(plan).find("for 1 chunk of 536870912 bytes"), std::string::npos) << found(plan);
  block(plan).ops[0].unit_bytes = 8208;  // 536870912 / 65535, and what is to the next 16
  EXPECT_EQ(found(plan), "");
}

TEST(Target, Pipelines) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  plan.max_message_size = 1 << 20;  // else it has too many turns
  Op& outside = add(block(plan), copy, {in(0)}, {out(0)});
  outside.group_size = 2;
  pipeline_of(plan, 3);
  add(block(plan), copy, {in(0)}, {out(0)}).group_size = 2;
  add(block(plan), put_packets, {in(0, 2)}, {at(2, 0, 2)}, {}, memory);
  add(block(plan), Opcode::reduce, {out(0), scratch(0)}, {out(0)});
  EXPECT_EQ(
      found(plan),
      "[mscclpp_pipelined_groups] 'copy' of a pipeline is shared by 2 thread blocks, but MSCCL++ counts the "
      "turns of whole chunks and moves bytes behind the slices\n"
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
           " of 'copy' is 2 chunks in a pipeline over 3, but MSCCL++ goes on behind its end when it has come "
           "to "
           "that\n";
  };
  EXPECT_EQ(found(plan), text("src") + text("dst"));
}

/// Rank 0 sends packets that rank 1 unpacks; when it has them, it sends some back, if `answered`.
Plan packets(bool answered) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  add(block(plan), put_packets, {in(0)}, {at(2, 0)}, {}, memory);
  add(block(plan, 1), unpack_packets, {scratch(0)}, {out(0)});
  add(block(plan, 1), nop);
  if (!answered) return plan;
  add(block(plan, 1), put_packets, {out(0)}, {at(2, 1)}, {}, memory);
  add(block(plan), unpack_packets, {scratch(1)}, {out(0)});
  return plan;
}

TEST(Target, PacketBanks) {
  EXPECT_EQ(found(packets(true)), "");
  // Two packets to one place, a launch apart, are in two banks; nothing says that the first was read.
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), put_packets, {in(0)}, {at(2, 0)}, {}, memory);
    add(block(plan, rank), unpack_packets, {scratch(0)}, {out(0)});
  }
  EXPECT_EQ(all_texts(prove(plan)), "");
  EXPECT_EQ(
      found(plan),
      "[mscclpp_packet_banks] a launch comes here before what the one before it has in scratch is read, "
      "but MSCCL++ keeps packets once\n"
      "[mscclpp_packet_banks] a launch comes here before what the one before it has in scratch is read, "
      "but MSCCL++ keeps packets once\n");
  plan.use_double_scratch_buffer = true;
  EXPECT_EQ(found(plan), "");
}

TEST(Target, PacketPlaces) {
  Plan plan = packets(true);
  // Packets of chunk 0 take the room of plain chunks 0 and 1, those of chunk 1 of 2 and 3.
  add(block(plan, 1, 1), copy, {in(0)}, {scratch(2)});
  add(block(plan, 0, 1), copy, {in(0, 2)}, {scratch(0, 2)});
  add(block(plan, 0, 1), copy, {in(0)}, {scratch(4)});
  EXPECT_EQ(found(plan), "");
  add(block(plan, 1, 1), copy, {in(0)}, {scratch(1)});
  EXPECT_EQ(
      found(plan),
      "[mscclpp_packet_places] dst of 'put_packets' is packets of scratch[0:1] of rank 1, but MSCCL++ keeps "
      "them at scratch[0:2], and 'copy' has plain data at scratch[1:2]\n"
      "[mscclpp_packet_places] src of 'unpack_packets' is packets of scratch[0:1] of rank 1, but MSCCL++ "
      "keeps them at scratch[0:2], and 'copy' has plain data at scratch[1:2]\n");
}

TEST(Target, Transfers) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  add(block(plan), get, {at(0, 2)}, {scratch(2)}, {0}, memory);
  add(block(plan), put, {in(0), in(1)}, {at(1, 0), at(1, 1)}, {}, memory);
  add(block(plan), put_packets, {in(0)}, {at(2, 0)}, {}, memory);
  EXPECT_EQ(found(plan), "");
  add(block(plan), get, {at(0, 2)}, {scratch(3)}, {0}, memory);
  add(block(plan), put, {in(0), out(1)}, {at(1, 0), at(1, 1)}, {}, memory);
  add(block(plan), put_packets, {in(0)}, {at(2, 0)}, {0}, port);
  EXPECT_EQ(
      found(plan),
      "[mscclpp_get_offsets] 'get' reads from chunk 2 of the peer to chunk 3 here, but MSCCL++ takes each "
      "offset for the other\n"
      "[mscclpp_put_sources] 'put' reads from input and from output, but MSCCL++ takes all from input\n"
      "[mscclpp_port_packets] 'put_packets' reads 1 chunk of plain data, but over a port channel MSCCL++ "
      "takes them for packets\n");
}

TEST(Target, SwitchReductionsAndOperationsOfOurs) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  add(block(plan), switch_reduce_broadcast, {at(0, 0)}, {at(0, 0)}, {}, switched);
  EXPECT_EQ(found(plan), "");
  add(block(plan), switch_reduce, {at(0, 0)}, {in(0)}, {}, switched);
  add(block(plan), combine_packets, {scratch(0), scratch(1)}, {out(0)});
  EXPECT_EQ(
      found(plan),
      "[mscclpp_switch_reduce] 'switch_reduce' of 1 chunk is not followed by a broadcast that makes its "
      "result superfluous, but MSCCL++ has no reduction without one\n"
      "[mscclpp_extensions] 'combine_packets' is an operation of ours, but MSCCL++ knows only its own\n");
}

TEST(Target, PacketsInSimple) {
  Plan plan = two_ranks();
  add(block(plan), copy_packets, {in(0)}, {scratch(0)});
  EXPECT_EQ(found(plan),
            "[mscclpp_packet_protocol] 'copy_packets' moves packets in the protocol Simple, but MSCCL++ then "
            "has room "
            "for half of the 8 chunks of scratch\n");
}

TEST(Target, DoubleScratch) {
  Plan plan = two_ranks();
  plan.protocol = Protocol::LL;
  plan.use_double_scratch_buffer = true;
  add(block(plan), put_packets, {in(0)}, {at(2, 0)}, {}, memory);
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), put, {scratch(0)}, {at(1, 0)}, {}, memory);
  EXPECT_EQ(found(plan), "");
  const auto wrong = [](const char* what) {
    return std::string("[mscclpp_double_scratch] ") + what +
           " of a double scratch buffer, but MSCCL++ takes the first half of it in every call\n";
  };
  add(block(plan), put, {in(0)}, {at(2, 3)}, {}, memory);
  add(block(plan), put, {scratch(4)}, {at(1, 0)}, {0}, port);
  add(block(plan), switch_broadcast, {in(0)}, {at(1, 5)}, {}, switched);
  EXPECT_EQ(found(plan), wrong("dst of 'put' is chunk 3") + wrong("src of 'put' is chunk 4") +
                             wrong("dst of 'switch_broadcast' is chunk 5"));
}

TEST(Target, ReusedScratch) {
  Plan plan = two_ranks();
  plan.reuse_resources = true;
  add(block(plan), copy, {in(0)}, {scratch(0)});
  // Eight chunks of input and of scratch: a chunk of the largest message has a share of scratch.
  plan.max_message_size = 64 << 20;
  EXPECT_EQ(found(plan), "");
  plan.max_message_size += 8 * 16;
  EXPECT_EQ(
      found(plan),
      "[mscclpp_reused_scratch] 'copy' is at scratch with chunks of up to 8388624 bytes, but MSCCL++ keeps "
      "67108864 bytes of reused scratch, 8388608 bytes for each of 8 chunks, and goes on in the next\n");
  plan.max_message_size = UINT64_MAX;
  EXPECT_NE(found(plan).find("chunks of up to 536870912 bytes"), std::string::npos);
  pipeline_of(plan, 1);
  add(block(plan), copy, {in(0)}, {scratch(0)});
  EXPECT_NE(found(plan).find("and goes round in them"), std::string::npos);
  // 36 chunks of 932068 bytes are aligned to 932080, and that is more than half of scratch.
  plan = two_ranks();
  plan.reuse_resources = plan.use_double_scratch_buffer = true;
  plan.gpus[0].chunks[0] = plan.gpus[0].chunks[2] = 36;
  add(block(plan), copy, {in(0)}, {scratch(0)});
  plan.max_message_size = 36 * 900000;
  EXPECT_EQ(found(plan), "");
  plan.max_message_size = 36 * 932080;
  EXPECT_NE(found(plan).find("which are aligned beyond its end"), std::string::npos) << found(plan);
}

TEST(Target, ReusedAddresses) {
  Plan plan = two_ranks();
  plan.reuse_resources = true;
  plan.max_message_size = 1 << 20;
  add(block(plan), put, {in(0)}, {at(2, 0)}, {}, memory);
  EXPECT_EQ(found(plan), "");
  add(block(plan), put, {in(0)}, {at(1, 3)}, {}, memory);
  EXPECT_EQ(
      found(plan),
      "[mscclpp_reused_addresses] dst of 'put' is chunk 3 of a peer's output with resources reused, but "
      "MSCCL++ then keeps the address of the first call\n");
}

TEST(Target, SharedSemaphores) {
  Plan plan = two_ranks();
  for (int turn = 0; turn < 2; ++turn) add(block(plan), sem_acquire, {}, {}, {0});
  add(block(plan, 0, 1), sem_release, {}, {}, {0});
  EXPECT_EQ(found(plan), "");
  add(block(plan, 0, 1), sem_acquire, {}, {}, {0});
  EXPECT_EQ(found(plan),
            "[mscclpp_shared_semaphores] semaphore 0 of rank 0 is acquired by thread block 1 and by thread "
            "block 0, "
            "but MSCCL++ loses releases with more than 1 acquirer\n");
}

TEST(Target, SemaphoreValues) {
  Plan plan = two_ranks();
  plan.gpus[1].semaphores[2] = INT32_MAX;
  EXPECT_EQ(found(plan), "");
  ++plan.gpus[1].semaphores[2];
  EXPECT_EQ(found(plan),
            "[mscclpp_semaphore_values] semaphore 2 of rank 1 begins with 2147483648, but MSCCL++ reads at "
            "most 2147483647\n");
  const Diagnostics findings = check(plan, Target::mscclpp);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].path, "/gpus/1/semaphores/2/init_value");
}

TEST(Target, PutWithSignalAndFlush) {
  Plan plan = two_ranks();
  add(block(plan), put_with_signal, {in(3)}, {at(1, 0)}, {0}, port);
  EXPECT_EQ(found(plan), "");
  add(block(plan), put_with_signal_and_flush, {in(3)}, {at(1, 1)}, {0}, port);
  EXPECT_EQ(
      found(plan),
      "[mscclpp_put_with_signal_and_flush] 'put_with_signal_and_flush' reads from chunk 3 of input, but "
      "MSCCL++ takes the address of an array for its offset\n");
}

TEST(Target, InPlace) {
  const auto wrong = [](const char* what, const char* whose, const char* why) {
    return "[mscclpp_in_place] " + std::string(what) + " of " + whose + ", but MSCCL++ takes it from where " +
           why + "\n";
  };
  Plan plan = two_ranks();
  plan.inplace = true;
  for (Gpu& gpu : plan.gpus) gpu.chunks[0] = 4;
  const auto add_operations = [&](uint32_t remote) {
    add(block(plan), put, {scratch(0)}, {at(remote, 3)}, {}, memory);
    add(block(plan), put, {{1, 1, remote}}, {at(2, 0)}, {0}, port);
    add(block(plan), copy, {in(0)}, {scratch(0)});
    add(block(plan), copy, {scratch(0)}, {out(0)});
  };
  // Each names buffers that begin where the memory does, and its own.
  plan.collective = "allgather";
  add_operations(1);
  add(block(plan), switch_broadcast, {in(0)}, {at(0, 5)}, {}, switched);
  EXPECT_EQ(found(plan), "");
  for (const bool scattered : {false, true}) {
    plan = two_ranks();
    plan.gpus[0].chunks[scattered] = plan.gpus[1].chunks[scattered] = 4;
    plan.inplace = true;
    plan.collective = scattered ? "reducescatter" : "allgather";
    add_operations(scattered);
    const std::string nested = scattered ? " of the output" : " of the input";
    const char* const peer =
        scattered ? "rank 1, in place a part of its input" : "rank 1, in place a part of its output";
    const char* const own =
        scattered ? "rank 0, in place a part of its input" : "rank 0, in place a part of its output";
    const char* const whole = scattered ? "the input begins" : "the output begins";
    std::string expected =
        wrong(("dst of 'put' is chunk 3" + nested).c_str(), peer, "that of rank 0 begins") +
        wrong(("src of 'put' is chunk 1" + nested).c_str(), own, whole);
    if (scattered) {
      add(block(plan), switch_broadcast, {in(0)}, {at(0, 2)}, {}, switched);
      expected += wrong("dst of 'switch_broadcast' is chunk 2 of the output",
                        "each member, in place a part of its input", "that of rank 0 begins");
    }
    EXPECT_EQ(found(plan), expected);
    plan.inplace = false;
    EXPECT_EQ(found(plan), "");
  }
}

TEST(Target, SwitchOrder) {
  Plan plan = two_ranks();
  // A channel with others than the peer may stand anywhere, and one that the peer lacks at the end.
  plan.gpus[1].channels.insert(
      plan.gpus[1].channels.begin(),
      {.type = ChannelType::switched, .connected_to = {}, .buffer = BufferKind::input, .rank_groups = {{1}}});
  EXPECT_EQ(all_texts(check(plan, Target::mscclpp)), "");
  std::swap(plan.gpus[1].channels[3], plan.gpus[1].channels[4]);
  EXPECT_EQ(all_texts(check(plan, Target::mscclpp)),
            "[mscclpp_switch_order] switch channel 0 of rank 0 is output of ranks 0, 1, made by rank 0, and "
            "switch channel 1 of rank 1 is scratch of ranks 0, 1, made by rank 0, but MSCCL++ makes each "
            "together with its members, in the order of their lists\n");
  // The first member makes it: both wait for the other.
  plan = two_ranks();
  plan.gpus[1].channels[3].rank_groups[0] = {1, 0};
  EXPECT_EQ(all_texts(check(plan, Target::mscclpp)),
            "[mscclpp_switch_order] switch channel 1 of rank 0 is scratch of ranks 0, 1, made by rank 0, and "
            "switch channel 1 of rank 1 is scratch of ranks 0, 1, made by rank 1, but MSCCL++ makes each "
            "together with its members, in the order of their lists\n");
}

std::string name_of_code(Opcode code) { return "'" + std::string(info(code).name) + "'"; }

std::string early_access(const char* access, const char* wait, const char* threads) {
  return "[mscclpp_fences] '" + std::string(access) + "' comes behind " + wait +
         ", and no nop or barrier is between them, but in MSCCL++ only " + threads + " there\n";
}

std::string early_post(const char* post, const char* access) {
  return "[mscclpp_fences] " + std::string(post) + " comes behind '" + access +
         "', and no nop or barrier is between them, but in MSCCL++ it waits for no other thread\n";
}

TEST(Target, FencesBehindWaits) {
  for (const Opcode code : {wait, relaxed_wait, sem_acquire}) {
    for (const bool fenced : {true, false}) {
      Plan plan = two_ranks();
      const bool semaphore = code == sem_acquire;
      add(block(plan), code, {}, {}, {0}, semaphore ? ChannelType::none : memory);
      if (fenced) add(block(plan), nop);
      add(block(plan), copy, {in(0)}, {out(0)});
      add(block(plan), copy, {in(1)}, {out(1)});
      const std::string what = name_of_code(code) + (semaphore ? " of 1 semaphore" : " of 1 channel");
      EXPECT_EQ(found(plan), fenced ? "" : early_access("copy", what.c_str(), "1 thread waits"));
    }
  }
}

TEST(Target, FencesBeforeSignals) {
  for (const Opcode code : {signal, sem_release}) {
    for (const bool fenced : {true, false}) {
      Plan plan = two_ranks();
      const bool semaphore = code == sem_release;
      add(block(plan), copy, {in(0)}, {out(0)});
      if (fenced) add(block(plan), nop);
      add(block(plan), code, {}, {}, {0}, semaphore ? ChannelType::none : memory);
      // What comes behind a signal need not know of it.
      add(block(plan), copy, {in(1)}, {out(1)});
      const std::string what = name_of_code(code) + (semaphore ? " of 1 semaphore" : " of 1 channel");
      EXPECT_EQ(found(plan), fenced ? "" : early_post(what.c_str(), "copy"));
    }
  }
  // It orders no data anyway.
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), relaxed_signal, {}, {}, {0}, memory);
  EXPECT_EQ(found(plan), "");
}

// One thread waits, and the same one hands over the transfer.
TEST(Target, FencesOfPortChannels) {
  Plan plan = two_ranks();
  add(block(plan), wait, {}, {}, {0}, port);
  add(block(plan), put, {in(0)}, {at(1, 0)}, {0}, port);
  add(block(plan), signal, {}, {}, {0}, port);
  EXPECT_EQ(found(plan), "");
  add(block(plan), wait, {}, {}, {0, 1}, port);
  add(block(plan), put_with_signal, {in(0)}, {at(1, 0)}, {0}, port);
  EXPECT_EQ(found(plan), early_access("put_with_signal", "'wait' of 2 channels", "2 threads wait"));
}

// What a pipeline begins with comes behind what it ends with.
TEST(Target, FencesOfPipelines) {
  for (const bool fenced : {true, false}) {
    Plan plan = two_ranks();
    plan.max_message_size = 1 << 20;
    pipeline_of(plan, 4);
    add(block(plan), sem_release, {}, {}, {0});
    add(block(plan), sem_acquire, {}, {}, {1});
    add(block(plan), nop);
    add(block(plan), copy, {in(0)}, {out(0)});
    EXPECT_EQ(found(plan), early_post("'sem_release' of 1 semaphore", "copy"));
    if (fenced) {
      block(plan).ops[0].body = 5;
      add(block(plan), nop);
      EXPECT_EQ(found(plan), "");
    }
    // And so does what is behind it.
    add(block(plan), signal, {}, {}, {0}, memory);
    EXPECT_EQ(found(plan), fenced ? ""
                                  : early_post("'sem_release' of 1 semaphore", "copy") +
                                        early_post("'signal' of 1 channel", "copy"));
  }
}

}  // namespace
}  // namespace chorale
