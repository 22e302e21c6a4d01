// What the rewrites make, and what they must leave alone. D1 to D12 are faults of MSCCL++'s compiler that
// these rewrites must not have.

#include <utility>

#include "helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
constexpr ChannelType memory = ChannelType::memory, port = ChannelType::port,
                      switched = ChannelType::switched;
constexpr CompileOptions plain{};

Op& loop(Plan& plan, uint32_t body) {
  Op& op = add(block(plan), pipeline);
  op.body = body;
  op.unit_bytes = 64;
  op.chunks = 1;
  return op;
}

/// The mnemonics after one rewrite; the plan before it passes the first two checks, and still does after it.
std::string after(bool (*rewrite)(Plan&, const CompileOptions&), Plan& plan,
                  const CompileOptions& options = plain) {
  const auto sound = [&](const char* when) {
    Diagnostics found;
    pass::structure(plan, found);
    pass::bounds(plan, found);
    EXPECT_EQ(all_texts(found), "") << when;
  };
  const std::string before = write(plan);
  sound("before");
  const bool changed = rewrite(plan, options);
  sound("after");
  EXPECT_TRUE(changed || write(plan) == before);
  return words(plan);
}

TEST(Fuse, JoinsControlOperations) {
  Plan plan = two_ranks();
  add(block(plan), signal, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), signal, {}, {}, {1}, memory).sync = SyncType::both;
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), wait, {}, {}, {1}, memory).sync = SyncType::both;
  EXPECT_EQ(after(pass::fuse, plan), "signal wait");
  EXPECT_EQ(text(plan, 0), R"({"name":"signal","channel_ids":[0,1],"channel_type":"memory"})");
  EXPECT_EQ(block(plan).ops[0].sync, SyncType::both);
}

TEST(Fuse, KeepsOneChannelTwice) {
  Plan plan = two_ranks();
  for (int turn = 0; turn < 2; ++turn) add(block(plan), signal, {}, {}, {0}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "signal signal");
}

TEST(Fuse, FencesOperationsWhoseIdsChangeTheirThread) {
  Plan plan = two_ranks();
  for (const uint32_t id : {0, 1}) add(block(plan), put, {in(id)}, {at(1, id)}, {id}, port);
  for (const uint32_t id : {0, 1}) add(block(plan), signal, {}, {}, {id}, port);
  EXPECT_EQ(after(pass::fuse, plan), "put signal");
  EXPECT_EQ(after(pass::data_sync, plan), "nop put nop signal nop");
}

TEST(Fuse, WaitsOfTwoBlocksOnOneChannelStayApart) {
  Plan plan = two_ranks();
  for (const uint32_t id : {0, 1}) add(block(plan), sem_acquire, {}, {}, {id});
  Plan shared = plan;
  for (const uint32_t id : {0, 1}) add(block(shared, 0, 1), sem_acquire, {}, {}, {id});
  EXPECT_EQ(after(pass::fuse, plan), "sem_acquire");
  // Two blocks that take two locks in one order may not take them in any order.
  EXPECT_EQ(after(pass::fuse, shared), "sem_acquire sem_acquire");
}

TEST(Fuse, JoinsTransfersOfOneSize) {
  Plan plan = two_ranks();
  add(block(plan), put, {in(0)}, {at(1, 0)}, {}, memory);
  add(block(plan), put, {out(1)}, {at(1, 1)}, {}, memory);  // D11: another source buffer is another operand
  add(block(plan), put, {in(2, 2)}, {at(1, 2, 2)}, {}, memory);
  add(block(plan), get, {at(0, 0)}, {scratch(0)}, {0}, memory);
  add(block(plan), get, {at(0, 1)}, {scratch(1)}, {0}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "put put get");
  EXPECT_EQ(std::as_const(block(plan)).sources(block(plan).ops[0])[1], out(1));
}

TEST(Fuse, KeepsTheOrderOfWritesToOneChunk) {
  Plan plan = two_ranks();
  add(block(plan), put, {in(0)}, {at(1, 0)}, {}, memory);
  add(block(plan), put, {in(1)}, {at(1, 0)}, {}, memory);
  add(block(plan), get, {at(0, 0, 2)}, {scratch(0, 2)}, {0}, memory);
  add(block(plan), get, {at(0, 1, 2)}, {scratch(1, 2)}, {0}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "put put get get");
}

TEST(Fuse, D2ChainsOnlyWhatItAccumulates) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {in(0)});
  add(block(plan), Opcode::reduce, {in(0), in(2)}, {in(0)});
  EXPECT_EQ(after(pass::fuse, plan), "re");
  EXPECT_EQ(block(plan).ops[0].sources, 3u);

  Plan other = two_ranks();
  add(block(other), Opcode::reduce, {in(0), in(1)}, {out(0)});  // o = x + a; o = x + b
  add(block(other), Opcode::reduce, {in(0), in(2)}, {out(0)});
  EXPECT_EQ(after(pass::fuse, other), "re re");

  Plan twice = two_ranks();
  add(block(twice), Opcode::reduce, {in(0), in(1)}, {in(0)});  // x += a; x += x
  add(block(twice), Opcode::reduce, {in(0), in(0)}, {in(0)});
  EXPECT_EQ(after(pass::fuse, twice), "re re");

  Plan average = two_ranks();
  for (const uint64_t k : {1, 2})
    add(block(average), Opcode::reduce, {in(0), in(k)}, {in(0)}).reduce_op = ReduceOp::avg;
  EXPECT_EQ(after(pass::fuse, average), "re re");
}

TEST(Fuse, SendsWhatItReduces) {
  Plan plan = two_ranks();
  add(block(plan), read_reduce, {in(0), at(0, 0)}, {in(0)}, {}, memory);
  add(block(plan), put, {in(0)}, {at(0, 0)}, {}, memory);
  add(block(plan), put, {in(0)}, {at(1, 5)}, {}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "rres");
  EXPECT_EQ(block(plan).ops[0].destinations, 3u);

  Plan elsewhere = two_ranks();  // the peer's chunks that are read are not those that are written
  add(block(elsewhere), read_reduce, {in(0, 2), at(0, 0, 2)}, {in(0, 2)}, {}, memory);
  add(block(elsewhere), put, {in(0, 2)}, {at(0, 1, 2)}, {}, memory);
  EXPECT_EQ(after(pass::fuse, elsewhere), "rre put");

  Plan over_port = two_ranks();
  add(block(over_port), Opcode::reduce, {in(0), in(1)}, {in(0)});
  add(block(over_port), put, {in(0)}, {at(1, 0)}, {0}, port);
  EXPECT_EQ(after(pass::fuse, over_port), "re put");
}

TEST(Fuse, KeepsAndForwardsPackets) {
  Plan plan = two_ranks();
  add(block(plan), reduce_packets, {in(0), scratch(0)}, {out(0)});
  add(block(plan), copy_packets, {out(0)}, {scratch(4)});
  add(block(plan), read_put_packets, {scratch(4)}, {at(2, 4)}, {}, memory);
  add(block(plan), put_packets, {out(0)}, {at(2, 5)}, {}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "recspkt");
  EXPECT_EQ(
      text(plan, 0),
      R"({"name":"recspkt","src_buff":[{"type":"i","index":0,"size":1},{"type":"s","index":0,"size":1}],)"
      R"("dst_buff":[{"type":"o","index":0,"size":1},{"type":"s","index":4,"size":1},)"
      R"({"buffer_id":2,"index":4,"size":1},{"buffer_id":2,"index":5,"size":1}],)"
      R"("channel_type":"memory","reduce_op":"sum"})");
}

TEST(Fuse, D6AndD7SwitchReductions) {
  Plan plan = two_ranks();
  add(block(plan), switch_reduce, {at(0, 0)}, {in(0)}, {}, switched);
  add(block(plan), switch_broadcast, {in(0)}, {at(0, 3)}, {}, switched);
  Plan used = plan;
  EXPECT_EQ(after(pass::fuse, plan), "glres");
  EXPECT_EQ(text(plan, 0),
            R"({"name":"glres","src_buff":[{"switch_channel_id":0,"index":0,"size":1}],)"
            R"("dst_buff":[{"switch_channel_id":0,"index":3,"size":1}],"channel_type":"switch",)"
            R"("reduce_op":"sum"})");
  // The chunk that the reduction wrote is read again, here by the peer.
  add(block(used, 1), get, {at(0, 0)}, {out(5)}, {0}, memory);
  EXPECT_EQ(after(pass::fuse, used), "glre gstore");
  // A chunk of the output is a result, unless the broadcast stores it as well.
  for (const uint64_t broadcast : {3, 1}) {
    Plan result = two_ranks();
    add(block(result), switch_reduce, {at(0, 0)}, {out(1)}, {}, switched);
    add(block(result), switch_broadcast, {out(1)}, {at(0, broadcast)}, {}, switched);
    EXPECT_EQ(after(pass::fuse, result), broadcast == 1 ? "glres" : "glre gstore");
  }
}

TEST(Fuse, D12StopsAtWhatAnOperationHolds) {
  Plan plan = two_ranks();
  for (uint64_t k = 0; k < 8; ++k) add(block(plan), put, {in(k)}, {at(1, k)}, {}, memory);
  for (uint64_t k = 0; k < 8; ++k) add(block(plan), put, {out(k)}, {at(2, k)}, {}, memory);
  EXPECT_EQ(after(pass::fuse, plan), "put put");
  EXPECT_EQ(block(plan).ops[0].sources, 8u);
}

TEST(Fuse, FencesAndBodies) {
  Plan plan = two_ranks();
  add(block(plan), nop);
  add(block(plan), nop);
  loop(plan, 3);
  add(block(plan), nop);
  add(block(plan), nop);
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), nop);
  EXPECT_EQ(after(pass::fuse, plan), "nop pipeline(nop copy) nop");
}

TEST(DataSync, OneFenceBetweenTwo) {
  Plan plan = two_ranks();
  add(block(plan), signal, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), nop);
  add(block(plan), sem_release, {}, {}, {0}).sync = SyncType::before;
  add(block(plan), copy, {in(0)}, {out(0)});
  EXPECT_EQ(after(pass::data_sync, plan), "nop signal nop wait nop sem_release copy");
}

TEST(DataSync, D1KeepsTheFenceBeforeAPipeline) {
  Plan plan = two_ranks();
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::after;
  loop(plan, 2);
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), nop);
  EXPECT_EQ(after(pass::fuse, plan), "wait pipeline(copy nop)");
  EXPECT_EQ(after(pass::data_sync, plan), "wait nop pipeline(copy nop)");
}

TEST(DataSync, BodiesOfPipelines) {
  Plan plan = two_ranks();
  loop(plan, 2);
  add(block(plan), wait, {}, {}, {0}, memory).sync = SyncType::both;
  add(block(plan), copy, {in(0)}, {out(0)}).sync = SyncType::after;
  add(block(plan), nop);
  EXPECT_EQ(after(pass::data_sync, plan), "pipeline(nop wait nop copy nop) nop");
}

TEST(DependencySync, ReadsAndWrites) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), copy, {in(0)}, {out(1)});  // reads only: no fence
  add(block(plan), copy, {out(1)}, {scratch(0)});
  add(block(plan), copy, {in(1)}, {scratch(0)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy copy nop copy nop copy");
  Plan off = two_ranks();
  add(block(off), copy, {in(0)}, {out(0)});
  add(block(off), copy, {out(0)}, {out(1)});
  EXPECT_EQ(after(pass::dependency_sync, off, {.auto_sync = false}), "copy copy");
}

TEST(DependencySync, D3RemembersWhatTheOperationBehindAFenceTouched) {
  Plan plan = two_ranks();
  add(block(plan), copy, {scratch(0)}, {out(0)});
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), copy, {out(4)}, {in(0)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop copy nop copy");
}

TEST(DependencySync, D4AnOperationDoesNotHideItsPredecessors) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0, 2)}, {out(0, 2)});
  add(block(plan), Opcode::reduce, {in(1), in(3)}, {in(1)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop re");
}

TEST(DependencySync, D8PacketReductions) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {out(0)});
  add(block(plan), reduce_packets, {out(0), scratch(0)}, {out(1)});
  add(block(plan), reduce_copy_packets, {in(0), scratch(1)}, {out(2), scratch(2)});
  add(block(plan), read_put_packets, {scratch(2)}, {at(2, 0)}, {}, memory);
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop repkt recpkt rppkt");
}

TEST(DependencySync, PacketsAreWaitedForByTheirReaders) {
  Plan plan = two_ranks();
  add(block(plan), copy_packets, {in(0, 2)}, {scratch(0, 2)});
  add(block(plan), unpack_packets, {scratch(0)}, {out(0)});
  add(block(plan), copy_packets, {in(2)},
      {scratch(0)});  // overwrites what other threads may yet have to read
  add(block(plan), unpack_packets, {scratch(1)}, {out(1)});
  add(block(plan), unpack_packets, {scratch(0)}, {out(2)});  // could take the first packet for the second
  EXPECT_EQ(after(pass::dependency_sync, plan), "cpkt upkt nop cpkt upkt nop upkt");
}

TEST(DependencySync, D9SwitchOperations) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), switch_broadcast, {scratch(0)}, {at(0, 0)}, {}, switched);
  add(block(plan), copy, {out(0)}, {scratch(3)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop gstore nop copy");
}

TEST(DependencySync, InPlaceIsOneMemory) {
  const auto with = [](const char* collective, uint64_t input, uint64_t output) {
    Plan plan = two_ranks();
    plan.collective = collective;
    plan.inplace = true;
    for (Gpu& gpu : plan.gpus) gpu.chunks[0] = input, gpu.chunks[1] = output;
    return plan;
  };
  Plan reduced = with("allreduce", 8, 8);
  add(block(reduced), copy, {in(0)}, {scratch(0)});
  add(block(reduced), copy, {scratch(1)}, {out(0)});
  EXPECT_EQ(after(pass::dependency_sync, reduced), "copy nop copy");
  // The input of rank 1 is the second half of its output.
  Plan gathered = with("allgather", 4, 8);
  for (const uint64_t chunk : {1, 5}) {
    Plan plan = gathered;
    add(block(plan, 1), copy, {in(1)}, {scratch(0)});
    add(block(plan, 1), copy, {scratch(1)}, {out(chunk)});
    pass::dependency_sync(plan, plain);
    EXPECT_EQ(words(plan, 1), chunk == 5 ? "copy nop copy" : "copy copy");
  }
  // The output of rank 1 is the second half of its input.
  Plan scattered = with("reducescatter", 8, 4);
  add(block(scattered, 1), copy, {in(6)}, {scratch(0)});
  add(block(scattered, 1), copy, {scratch(1)}, {out(2)});
  pass::dependency_sync(scattered, plain);
  EXPECT_EQ(words(scattered, 1), "copy nop copy");
}

TEST(DependencySync, BetweenTurnsOfAPipeline) {
  Plan plan = two_ranks();  // each turn has a unit of its own
  loop(plan, 2);
  add(block(plan), copy, {in(0)}, {scratch(0)});
  add(block(plan), copy, {scratch(0)}, {out(0)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "pipeline(copy nop copy)");

  Plan shifted = two_ranks();  // but not where chunks overlap
  loop(shifted, 2);
  add(block(shifted), copy, {in(0, 2)}, {scratch(0, 2)});
  add(block(shifted), copy, {scratch(1, 2)}, {out(0, 2)});
  EXPECT_EQ(after(pass::dependency_sync, shifted), "pipeline(nop copy nop copy)");

  Plan reused = plan;  // nor where scratch wraps
  reused.reuse_resources = true;
  EXPECT_EQ(after(pass::dependency_sync, reused), "pipeline(nop copy nop copy)");
}

TEST(DependencySync, AroundPipelines) {
  Plan plan = two_ranks();
  add(block(plan), copy, {in(0)}, {scratch(0)});
  loop(plan, 1);
  add(block(plan), copy, {scratch(0)}, {out(0)});
  add(block(plan), copy, {out(0)}, {scratch(1)});
  EXPECT_EQ(after(pass::dependency_sync, plan), "copy nop pipeline(copy) nop copy");
}

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

TEST(MarkRequirements, OnlyWhatMscclppLacks) {
  Plan plan = two_ranks();
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {in(0)});
  EXPECT_EQ(after(pass::mark_requirements, plan), "re");
  add(block(plan), Opcode::reduce, {in(0), in(1)}, {in(0)}).reduce_op = ReduceOp::max;
  add(block(plan), flush, {}, {}, {0}, port);
  add(block(plan, 0, 1), switch_reduce, {at(0, 0)}, {in(2)}, {}, switched);
  EXPECT_EQ(after(pass::mark_requirements, plan), "chorale_require re re flush");
  EXPECT_EQ(plan.extension.requirements, (std::vector<std::string>{"reduce_op", "flush", "switch_reduce"}));
  EXPECT_FALSE(pass::mark_requirements(plan, plain));
  EXPECT_EQ(write(read(write(plan))), write(plan));
}

TEST(MarkRequirements, AnOperationOfOursIsAMark) {
  Plan plan = two_ranks();
  add(block(plan), reduce, {in(0), in(1)}, {in(0)}).reduce_op = ReduceOp::max;
  add(block(plan, 1), combine_packets, {scratch(0), scratch(1)}, {out(0)});
  EXPECT_EQ(after(pass::mark_requirements, plan), "re");
  EXPECT_EQ(plan.extension.requirements, (std::vector<std::string>{"reduce_op", "combine_packets"}));
  EXPECT_FALSE(pass::mark_requirements(plan, plain));
  EXPECT_EQ(write(read(write(plan))), write(plan));
}

TEST(Compile, RunsAllPasses) {
  Plan plan = two_ranks();
  for (const uint32_t rank : {0, 1}) {
    ThreadBlock& ops = block(plan, rank);
    add(ops, copy, {in(0)}, {scratch(0)});
    add(ops, put, {scratch(0)}, {at(1, 0)}, {}, memory);
    add(ops, signal, {}, {}, {0}, memory).sync = SyncType::both;
    add(ops, wait, {}, {}, {0}, memory).sync = SyncType::both;
  }
  const Diagnostics found = compile(plan, {.instances = 2});
  EXPECT_EQ(render(plan, found), "");
  EXPECT_EQ(words(plan, 1, 1), "copy nop put nop signal nop wait nop");
}

TEST(Compile, RefusesWhatCannotBeReplicated) {
  Plan plan = two_ranks();
  EXPECT_EQ(all_texts(compile(plan, {.instances = 0})),
            "[replicate] the program has 0 instances, expected 1 to 1024\n");
  plan.gpus[1].chunks[2] = uint64_t(1) << 47;
  EXPECT_EQ(all_texts(compile(plan, {.instances = 2})),
            "[replicate] a buffer of rank 1 has 140737488355328 chunks in 2 instances, expected at most "
            "70368744177664\n");
}

}  // namespace
}  // namespace chorale
