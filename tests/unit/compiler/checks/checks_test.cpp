// These tests have a plan for every check that the check refuses, with the right message.

#include <functional>

#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using enum Opcode;
using enum ChannelType;

/// Returns the texts of all findings of check() on the two-rank plan after `spoil` has changed it.
std::string findings(const std::function<void(Plan&)>& spoil) {
  Plan plan = two_ranks();
  spoil(plan);
  const Diagnostics found = check(plan);
  EXPECT_EQ(render(plan, found).empty(), found.empty());
  return all_texts(found);
}

/// Returns the findings after one operation is appended to block 0 of rank 0.
std::string finding(Opcode code, std::vector<Operand> sources = {}, std::vector<Operand> dests = {},
                    std::vector<uint32_t> ids = {}, ChannelType via = ChannelType::none) {
  return findings([&](Plan& plan) { add(block(plan), code, sources, dests, ids, via); });
}

TEST(Structure, AcceptsThePlanThatTheTestsSpoil) {
  EXPECT_EQ(findings([](Plan&) {}), "");
}

TEST(Structure, Launch) {
  EXPECT_EQ(findings([](Plan& plan) { plan.threads_per_block = 4096; }),
            "[structure] thread blocks have 4096 threads, expected a multiple of 32 up to 1024\n");
  EXPECT_EQ(findings([](Plan& plan) { plan.buffer_alignment = 0; }),
            "[structure] the buffer alignment is 0 bytes, expected a power of two\n");
  EXPECT_EQ(findings([](Plan& plan) { plan.min_message_size = 9, plan.max_message_size = 8; }),
            "[structure] the smallest message has 9 bytes, but the largest has 8\n");
}

TEST(Structure, ChunksOfACollective) {
  EXPECT_EQ(findings([](Plan& plan) { plan.collective = "allgather"; }),
            "[structure] the output of rank 0 has 8 chunks, but its input has 8\n"
            "[structure] the output of rank 1 has 8 chunks, but its input has 8\n");
  EXPECT_EQ(findings([](Plan& plan) { plan.collective = "allreduce", plan.gpus[1].chunks[0] = 4; }),
            "[structure] the input of rank 1 has 4 chunks, but that of rank 0 has 8\n"
            "[structure] the output of rank 1 has 8 chunks, but its input has 4\n");
}

TEST(Structure, RanksAndLists) {
  EXPECT_EQ(findings([](Plan& plan) { plan.gpus[0].channels[0].connected_to[1] = 7; }),
            "[structure] a memory channel of rank 0 names rank 7, but the plan has 2 ranks\n");
  EXPECT_EQ(findings([](Plan& plan) { plan.gpus[0].remote_buffers[0].rank = 0; }),
            "[structure] a remote buffer of rank 0 names rank 0 itself, expected another rank\n");
  EXPECT_EQ(findings([](Plan& plan) {
              block(plan).channels[0].ids = {1, 1, 2};
            }),
            "[structure] thread block 0 of rank 0 lists memory channel 2, but its rank has 2\n"
            "[structure] thread block 0 of rank 0 lists memory channel 1 twice\n");
  EXPECT_EQ(findings([](Plan& plan) { block(plan, 0, 1).id = 5; }),
            "[structure] thread block 1 of rank 0 has id 5, expected its position\n");
  EXPECT_EQ(findings([](Plan& plan) { plan.gpus[1].channels.pop_back(); }),
            "[structure] thread block 0 of rank 1 lists switch channel 1, but its rank has 1\n"
            "[structure] thread block 1 of rank 1 lists switch channel 1, but its rank has 1\n"
            "[structure] rank 0 has 1 switch channel over the scratch of these 2 ranks, but rank 1 has 0\n");
  EXPECT_EQ(findings([](Plan& plan) { plan.gpus[0].remote_buffers[2].access = {memory}; }),
            "[structure] thread block 0 of rank 0 reaches remote buffer 2 over port, but the buffer's access "
            "types do "
            "not have it\n"
            "[structure] thread block 1 of rank 0 reaches remote buffer 2 over port, but the buffer's access "
            "types do "
            "not have it\n");
}

TEST(Structure, LinesOfOperations) {
  const auto with_line = [](uint32_t at) {
    return findings([&](Plan& plan) {
      plan.source = {{"a.cpp", 1}};
      plan.joined = {{{.at = 5}, {.at = 1}}};
      add(block(plan), nop).at = at;
    });
  };
  EXPECT_EQ(with_line(1), "");
  EXPECT_EQ(with_line(3), "[structure] its line is number 2, but the plan knows 1\n");
  EXPECT_EQ(with_line(joined_calls), "[structure] its line is number 4, but the plan knows 1\n");
}

TEST(Structure, Extension) {
  EXPECT_EQ(findings([](Plan& plan) { plan.extension.root = 2; }),
            "[structure] the root is rank 2, but the plan has 2 ranks\n");
  EXPECT_EQ(findings([](Plan& plan) {
              plan.extension.post.assign(2, std::vector<std::vector<Contribution>>(8));
              plan.extension.post[1][0] = {{0, 8}};
            }),
            "[structure] the wanted result of rank 1 has chunk 8 of rank 0, but there are 2 ranks with 8 "
            "chunks each\n");
  EXPECT_EQ(findings([](Plan& plan) {
              plan.extension.post.assign(2, std::vector<std::vector<Contribution>>(8));
              plan.extension.post[0].clear();
            }),
            "[structure] the wanted result of rank 0 has 0 segments, but the output has 8\n");
  EXPECT_EQ(findings([](Plan& plan) {
              plan.extension.post.assign(2, std::vector<std::vector<Contribution>>(8));
              plan.extension.post[0].clear();
              plan.gpus[0].chunks[size_t(BufferKind::output)] = 0;
            }),
            "");
  EXPECT_EQ(findings([](Plan& plan) { plan.extension.requirements = {"magic"}; }),
            "[structure] the plan requires 'magic', which is not known\n");
}

TEST(Structure, ListsOfAnOperation) {
  EXPECT_EQ(finding(copy, {in(0), in(1)}, {out(0)}), "[structure] 'copy' has 2 sources, expected 1\n");
  EXPECT_EQ(finding(Opcode::reduce, {in(0)}, {in(0)}),
            "[structure] 'reduce' has 1 source, expected at least 2\n");
  EXPECT_EQ(finding(put, {in(0), in(1)}, {at(1, 0)}, {}, memory),
            "[structure] 'put' has 2 sources, but 1 destination\n");
  EXPECT_EQ(finding(signal, {}, {}, {}, memory),
            "[structure] 'signal' has no channels, expected at least 1\n");
}

TEST(Structure, NoOperationDivides) {
  EXPECT_EQ(findings([](Plan& plan) {
              add(block(plan), Opcode::reduce, {in(0), in(1)}, {out(0)}).reduce_op = ReduceOp::avg;
            }),
            "[structure] 'reduce' reduces by avg, but plans only add: the executor divides at the end\n");
}

TEST(Structure, IdsOfAnOperation) {
  EXPECT_EQ(finding(signal, {}, {}, {2}, memory),
            "[structure] 'signal' names channel 2 of its thread block, which has no such memory channel\n");
  EXPECT_EQ(finding(put, {in(0)}, {at(3, 0)}, {}, memory),
            "[structure] dst of 'put' is in remote buffer 3 of its thread block, which has no such buffer\n");
  EXPECT_EQ(
      finding(switch_broadcast, {in(0)}, {at(2, 0)}, {}, switched),
      "[structure] dst of 'switch_broadcast' is in switch channel 2 of its thread block, which has no such "
      "channel\n");
  EXPECT_EQ(finding(sem_acquire, {}, {}, {3}),
            "[structure] 'sem_acquire' names semaphore 3, but rank 0 has 3\n");
  EXPECT_EQ(finding(put_with_signal, {in(0), in(1)}, {at(1, 0), at(1, 1)}, {0}, port),
            "[structure] 'put_with_signal' has 1 channel, but 2 remote operands\n");
}

TEST(Structure, ChannelTypes) {
  EXPECT_EQ(finding(flush, {}, {}, {0}, memory),
            "[structure] 'flush' goes over memory channels, expected port\n");
  EXPECT_EQ(finding(relaxed_wait, {}, {}, {0}, port),
            "[structure] 'relaxed_wait' goes over port channels, expected memory\n");
  EXPECT_EQ(finding(signal, {}, {}, {0}, switched),
            "[structure] 'signal' goes over switch channels, expected memory or port\n");
  EXPECT_EQ(finding(signal, {}, {}, {0}),
            "[structure] 'signal' goes over none channels, expected memory or port\n");
}

TEST(Structure, PacketsLiveInScratch) {
  EXPECT_EQ(finding(copy_packets, {in(0)}, {out(0)}),
            "[structure] dst of 'copy_packets' holds packets in the output buffer, expected scratch\n");
  EXPECT_EQ(finding(put_packets, {in(0)}, {at(1, 0)}, {}, memory),
            "[structure] dst of 'put_packets' holds packets in the output buffer, expected scratch\n");
}

TEST(Structure, RemoteBufferBelongsToThePeer) {
  Plan plan = two_ranks();
  plan.gpus.push_back(Gpu{});
  plan.gpus[2].id = 2;
  plan.gpus[0].remote_buffers[1].rank = 2;
  plan.gpus[2].chunks[1] = 8;
  add(block(plan), put_with_signal, {in(0)}, {at(1, 0)}, {0}, port);
  EXPECT_EQ(
      all_texts(check(plan)),
      "[structure] 'put_with_signal' goes over channel 0 to rank 1, but its remote buffer 1 is on rank 2\n");
}

TEST(Structure, GroupsAndPipelines) {
  EXPECT_EQ(findings([](Plan& plan) {
              Op& op = add(block(plan), copy, {in(0)}, {out(0)});
              op.group_index = op.group_size = 4;
            }),
            "[structure] 'copy' is member 4 of a thread block group of 4\n");
  const auto loop = [](Plan& plan, uint32_t body, uint64_t unit) {
    Op& op = add(block(plan), pipeline);
    op.body = body;
    op.unit_bytes = unit;
    op.chunks = 1;
  };
  EXPECT_EQ(findings([&](Plan& plan) { loop(plan, 2, 0); }),
            "[structure] this pipeline has 2 operations, but only 0 follow\n"
            "[structure] this pipeline has units of 0 bytes, expected at least 1\n");
  EXPECT_EQ(findings([&](Plan& plan) {
              loop(plan, 2, 16);
              loop(plan, 1, 16);
              add(block(plan), nop);
            }),
            "[structure] this pipeline is inside another, expected it outside\n");
}

TEST(Structure, Barriers) {
  const auto arrive = [](Plan& plan, uint32_t id, uint32_t participants) {
    add(block(plan, 0, id), barrier, {}, {}, {3}).participants = participants;
  };
  EXPECT_EQ(findings([&](Plan& plan) { arrive(plan, 0, 2), arrive(plan, 1, 2); }), "");
  EXPECT_EQ(findings([&](Plan& plan) { arrive(plan, 0, 2), arrive(plan, 0, 2); }),
            "[structure] barrier 3 is for 2 thread blocks, but 1 arrives\n");
  EXPECT_EQ(findings([&](Plan& plan) { arrive(plan, 0, 2), arrive(plan, 1, 3); }),
            "[structure] barrier 3 is for 3 thread blocks here, but for 2 elsewhere\n");
  EXPECT_EQ(findings([&](Plan& plan) { arrive(plan, 0, 2), arrive(plan, 1, 2), arrive(plan, 1, 2); }),
            "[structure] thread block 0 arrives at barrier 3 1 time, but thread block 1 2 times\n");
}

TEST(Bounds, LocalRemoteAndSwitch) {
  EXPECT_EQ(finding(copy, {in(7, 2)}, {out(0, 2)}),
            "[bounds] src is input[7:9], but the input of rank 0 has 8 chunks\n");
  EXPECT_EQ(
      finding(copy, {in(UINT64_MAX, 2)}, {out(0, 2)}),
      "[bounds] src is input[18446744073709551615:beyond 2^64], but the input of rank 0 has 8 chunks\n");
  EXPECT_EQ(findings([](Plan& plan) {
              plan.gpus[1].chunks[1] = 4;
              add(block(plan), put, {in(0)}, {at(1, 4)}, {}, memory);
              add(block(plan), switch_broadcast, {in(0)}, {at(0, 6)}, {}, switched);
            }),
            "[bounds] dst is output[4:5], but the output of rank 1 has 4 chunks\n"
            "[bounds] dst is output[6:7], but the output of rank 1 has 4 chunks\n");
  EXPECT_EQ(findings([](Plan& plan) { plan.gpus[0].chunks[2] = uint64_t(1) << 60; }),
            "[bounds] the scratch of rank 0 has 1152921504606846976 chunks, expected at most 4294967296\n");
  EXPECT_EQ(findings([](Plan& plan) { plan.gpus[0].chunks[2] = uint64_t(1) << 32; }), "");
  EXPECT_EQ(findings([](Plan& plan) {
              std::vector<ThreadBlock>& blocks = plan.gpus[1].threadblocks;
              while (blocks.size() <= 65536) blocks.emplace_back().id = uint32_t(blocks.size());
            }),
            "[bounds] rank 1 has 65537 thread blocks, expected at most 65536\n");
}

TEST(Bounds, SizesOfPairs) {
  EXPECT_EQ(finding(get, {at(0, 0, 2)}, {out(0, 1)}, {0}, memory),
            "[bounds] src has 2 chunks, but dst has 1\n");
  EXPECT_EQ(finding(put, {in(0), in(2, 2)}, {at(1, 0), at(1, 2, 2)}, {}, memory), "");
  EXPECT_EQ(finding(Opcode::reduce, {in(0), in(1, 2)}, {in(0)}),
            "[bounds] src has 1 chunk, but others has 2\n");
}

TEST(Bounds, OperandsOfNothing) {
  EXPECT_EQ(
      finding(copy, {in(3, 0)}, {out(3, 0)}),
      "[bounds] src has 0 chunks, expected at least 1\n[bounds] dst has 0 chunks, expected at least 1\n");
}

TEST(Groups, EveryMemberTakesItsSlice) {
  const auto shared = [](std::initializer_list<uint32_t> members) {
    return findings([&](Plan& plan) {
      for (const uint32_t member : members) {
        Op& op = add(block(plan, 0, member % 2), put, {in(0)}, {at(1, 2)}, {}, memory);
        op.group_index = member;
        op.group_size = 3;
      }
    });
  };
  EXPECT_EQ(shared({0, 1, 2}), "");
  EXPECT_EQ(
      shared({2, 0, 0}),
      "[groups] this operation is shared by a group of 3 thread blocks, but no thread block is member 1 and "
      "takes that slice\n");
}

TEST(Groups, SlicesOfOtherChunksAreOthers) {
  EXPECT_EQ(
      findings([](Plan& plan) {
        for (const uint32_t member : {0u, 1u}) {
          Op& op = add(block(plan, 0, member), copy, {in(0)}, {out(member)});
          op.group_index = member;
          op.group_size = 2;
        }
      }),
      "[groups] this operation is shared by a group of 2 thread blocks, but no thread block is member 1 and "
      "takes that slice\n"
      "[groups] this operation is shared by a group of 2 thread blocks, but no thread block is member 0 and "
      "takes that slice\n");
}

TEST(Packets, SomebodyWritesThem) {
  const auto read_of = [](uint64_t index, uint64_t size) {
    return findings([&](Plan& plan) {
      plan.collective = "custom";
      add(block(plan), unpack_packets, {scratch(index, size)}, {out(0, size)});
      add(block(plan, 0, 1), copy_packets, {in(0)}, {scratch(0)});
      add(block(plan, 1), put_packets, {in(0, 2)}, {at(2, 1, 2)}, {}, memory);
      add(block(plan, 1), copy_packets, {in(0)}, {scratch(6)});  // of another rank
      add(block(plan, 1), unpack_packets, {scratch(5)}, {out(5)});
      add(block(plan), switch_broadcast_packets, {scratch(0)}, {at(1, 5)}, {}, switched);
    });
  };
  EXPECT_EQ(read_of(0, 3), "");
  EXPECT_EQ(read_of(5, 1), "");
  EXPECT_EQ(
      read_of(0, 4),
      "[packets] this wait for packets never ends: src is scratch[0:4] of rank 0, but no operation writes "
      "packets to chunk 3\n");
  EXPECT_EQ(
      read_of(6, 1),
      "[packets] this wait for packets never ends: src is scratch[6:7] of rank 0, but no operation writes "
      "packets to chunk 6\n");
}

TEST(Pairing, CountsBySideAndChannel) {
  EXPECT_EQ(findings([](Plan& plan) {
              add(block(plan), signal, {}, {}, {0}, memory);
              answer(plan, wait, 0, memory);
            }),
            "");
  // Counts agree per pair of ranks, but not per channel.
  EXPECT_EQ(findings([](Plan& plan) {
              add(block(plan), signal, {}, {}, {0}, memory);
              answer(plan, wait, 1, memory);
            }),
            "[pairing] this signal is never awaited: memory channel 0 of rank 0 to rank 1 is posted 1 time, "
            "but memory "
            "channel 0 of rank 1 is awaited 0 times\n"
            "[pairing] this wait is never answered: memory channel 1 of rank 0 to rank 1 is posted 0 times, "
            "but memory "
            "channel 1 of rank 1 is awaited 1 time\n");
  EXPECT_EQ(findings([](Plan& plan) {
              add(block(plan), put_with_signal, {in(0)}, {at(1, 0)}, {0}, port);
              answer(plan, wait, 0, memory);
            }).substr(0, 62),
            "[pairing] this wait is never answered: memory channel 0 of ran");
}

TEST(Pairing, ChannelsWithoutAMate) {
  EXPECT_EQ(findings([](Plan& plan) {
              plan.gpus[1].channels[0].connected_to = {0};
              for (ThreadBlock& block : plan.gpus[1].threadblocks) block.channels[0].ids = {0};
              add(block(plan), signal, {}, {}, {1}, memory);
              add(block(plan), wait, {}, {}, {1}, memory);
            }),
            "[pairing] this signal is never awaited: memory channel 1 of rank 0 to rank 1 is posted 1 time, "
            "but rank 1 "
            "has no channel that pairs with it\n"
            "[pairing] this wait is never answered: rank 1 has no channel that pairs with memory channel 1 "
            "of rank 0, "
            "which is awaited 1 time\n");
}

TEST(Pairing, TheHelpSaysWhatToChangeAndOnceHowChannelsPair) {
  const auto helps = [](const std::function<void(Plan&)>& spoil) {
    Plan plan = two_ranks();
    spoil(plan);
    std::vector<std::string> all;
    for (const Diagnostic& finding : check(plan)) all.push_back(finding.help);
    return all;
  };
  using Helps = std::vector<std::string>;
  const std::string pair =
      "; rank 0 has 2 memory channels to rank 1, which are paired with those from rank 1 to rank 0 in order: "
      "the first with the first, the second with the second";
  EXPECT_EQ(
      helps([](Plan& plan) {
        for (int time = 0; time < 2; ++time) add(block(plan), signal, {}, {}, {0}, memory);
        answer(plan, wait, 1, memory);
      }),
      (Helps{"rank 1 must wait 2 more times on its memory channel 0, or rank 0 must signal 2 times less on "
             "its memory channel 0" +
                 pair,
             "rank 0 must signal 1 more time on its memory channel 1, or rank 1 must wait 1 time less on "
             "its memory channel 1"}));
  EXPECT_EQ(helps([](Plan& plan) {
              plan.gpus[1].channels[0].connected_to = {0};
              for (ThreadBlock& block : plan.gpus[1].threadblocks) block.channels[0].ids = {0};
              add(block(plan), signal, {}, {}, {1}, memory);
              add(block(plan), wait, {}, {}, {1}, memory);
            }),
            (Helps{"make a memory channel from rank 1 to rank 0, on which rank 1 waits 1 time" + pair,
                   "make a memory channel from rank 1 to rank 0, on which rank 1 signals 1 time"}));
}

/// Returns the findings after an operation with encoded operands is appended to block 0 of rank 0, in a plan
/// with codecs of 128 and of 64 elements.
std::string coded_finding(Opcode code, std::vector<Operand> sources, std::vector<Operand> dests,
                          ChannelType via = ChannelType::none, uint32_t unit = 0) {
  return findings([&](Plan& plan) {
    plan.extension.codecs = {{CodecFormat::fp8_e4m3, 128}, {CodecFormat::int8, 64}};
    if (unit) {
      Op& loop = add(block(plan), pipeline);
      loop.body = 1;
      loop.unit_bytes = unit;
      loop.chunks = 1;
    }
    add(block(plan), code, std::move(sources), std::move(dests), {}, via);
  });
}

TEST(Codecs, ScratchAndThreads) {
  EXPECT_EQ(coded_finding(copy, {in(0)}, {coded(scratch(0))}), "");
  EXPECT_EQ(coded_finding(put, {in(0)}, {coded(at(2, 0))}, memory), "");
  EXPECT_EQ(coded_finding(read_reduce, {in(0), coded(at(2, 0))}, {out(0)}, memory), "");
  EXPECT_EQ(coded_finding(reduce, {in(0), coded(scratch(0), 1)}, {coded(scratch(1), 1)}), "");
  EXPECT_EQ(coded_finding(copy, {in(0)}, {coded(out(0))}),
            "[codecs] dst is encoded in the output buffer, expected scratch\n");
  EXPECT_EQ(coded_finding(put, {in(0)}, {coded(at(1, 0))}, memory),
            "[codecs] dst is encoded in the output buffer, expected scratch\n");
  EXPECT_EQ(coded_finding(put_packets, {coded(scratch(0))}, {at(2, 0)}, memory),
            "[codecs] src is encoded, but 'put_packets' moves elements as they are\n");
  EXPECT_EQ(coded_finding(copy, {in(0)}, {coded(scratch(0), 2)}),
            "[codecs] dst has codec 2, but the plan has 2 codecs\n");
}

TEST(Codecs, OnePerOperation) {
  EXPECT_EQ(coded_finding(copy, {coded(scratch(1))}, {coded(scratch(0))}), "");
  EXPECT_EQ(coded_finding(copy, {coded(scratch(1), 1)}, {coded(scratch(0))}),
            "[codecs] dst is encoded by codec 0, but another operand by codec 1\n");
  EXPECT_EQ(findings([](Plan& plan) {
              plan.extension.codecs = {{CodecFormat::int8, 48}};
            }),
            "[codecs] codec 0 has blocks of 48 elements, expected a power of two from 32 to 1024\n");
}

TEST(Codecs, UnitsOfPipelines) {
  EXPECT_EQ(coded_finding(copy, {in(0)}, {coded(scratch(0))}, none, 1024), "");
  EXPECT_EQ(coded_finding(copy, {in(0)}, {scratch(0)}, none, 256), "");
  // 256 bytes are 64 elements of f32.
  EXPECT_EQ(coded_finding(copy, {in(0)}, {coded(scratch(0), 1)}, none, 256), "");
  EXPECT_EQ(coded_finding(copy, {in(0)}, {coded(scratch(0))}, none, 256),
            "[codecs] dst is encoded in blocks of 128 elements, up to 512 bytes, but the pipeline's unit of "
            "256 bytes "
            "cuts a block\n");
}

TEST(Pairing, PipelinesByTheirTurns) {
  const auto looped = [](Plan& plan, uint32_t rank, Opcode code, uint64_t unit) {
    Op& loop = add(block(plan, rank), pipeline);
    loop.body = 1;
    loop.unit_bytes = unit;
    loop.chunks = 1;
    add(block(plan, rank), code, {}, {}, {0}, memory);
  };
  EXPECT_EQ(findings([&](Plan& plan) { looped(plan, 0, signal, 64), looped(plan, 1, wait, 64); }), "");
  EXPECT_EQ(findings([&](Plan& plan) { looped(plan, 0, signal, 64), looped(plan, 1, wait, 32); }),
            "[pairing] this signal is never awaited: memory channel 0 of rank 0 to rank 1 is posted 1 time "
            "in pipelines "
            "of 1 chunk by 64 bytes, but memory channel 0 of rank 1 is awaited 0 times in pipelines of 1 "
            "chunk by 64 "
            "bytes\n"
            "[pairing] this wait is never answered: memory channel 0 of rank 0 to rank 1 is posted 0 times "
            "in pipelines "
            "of 1 chunk by 32 bytes, but memory channel 0 of rank 1 is awaited 1 time in pipelines of 1 "
            "chunk by 32 "
            "bytes\n");
}

TEST(Pairing, Semaphores) {
  EXPECT_EQ(findings([](Plan& plan) {
              add(block(plan), sem_release, {}, {}, {1});
              add(block(plan, 0, 1), sem_acquire, {}, {}, {1});
            }),
            "");
  EXPECT_EQ(finding(sem_acquire, {}, {}, {2}),
            "[pairing] semaphore 2 of rank 0 starts at 0 and is released 0 times, but acquired 1 time\n");
}

TEST(Pairing, NotesNameTheOtherSide) {
  Plan plan = two_ranks();
  add(block(plan), signal, {}, {}, {0}, memory);
  add(block(plan), signal, {}, {}, {0}, memory);
  answer(plan, wait, 0, memory);
  const Diagnostics found = check(plan);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at->op, 1u);
  ASSERT_EQ(found[0].notes.size(), 1u);
  EXPECT_EQ(found[0].notes[0].at->rank, 1u);
}

}  // namespace
}  // namespace chorale
