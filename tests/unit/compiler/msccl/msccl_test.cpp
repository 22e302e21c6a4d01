// These tests check what the steps of an MSCCL file become. tests/msccl has whole algorithms, and
// tests/golden/import has every message.

#include <algorithm>
#include <string>

#include "chorale/msccl_xml.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

/// Returns a step whose source and destination are "i0" and the like.
std::string step(int number, const std::string& type, const std::string& source,
                 const std::string& destination, const std::string& more = "") {
  std::string text = "<step s=\"" + std::to_string(number) + "\" type=\"" + type + "\" srcbuf=\"" +
                     source[0] + "\" srcoff=\"" + source.substr(1) + "\" dstbuf=\"" + destination[0] +
                     "\" dstoff=\"" + destination.substr(1) + "\" ";
  if (more.find("cnt") == more.npos) text += "cnt=\"1\" ";
  if (more.find("depid") == more.npos) text += "depid=\"-1\" deps=\"-1\" ";
  if (more.find("hasdep") == more.npos) text += "hasdep=\"0\" ";
  return text + more + "/>\n";
}

std::string block(int id, int send, int receive, const std::string& steps, int channel = 0) {
  return "<tb id=\"" + std::to_string(id) + "\" send=\"" + std::to_string(send) + "\" recv=\"" +
         std::to_string(receive) + "\" chan=\"" + std::to_string(channel) + "\">\n" + steps + "</tb>\n";
}

std::string gpu(int id, const std::string& blocks,
                const std::string& sizes = R"(i_chunks="2" o_chunks="2" s_chunks="1")") {
  return "<gpu id=\"" + std::to_string(id) + "\" " + sizes + ">\n" + blocks + "</gpu>\n";
}

std::string algo(const std::string& gpus, const std::string& more = "inplace=\"0\"", int ranks = 2,
                 const std::string& collective = "alltoall", int chunks = 2) {
  return "<algo name=\"test\" proto=\"Simple\" nchunksperloop=\"" + std::to_string(chunks) + "\" ngpus=\"" +
         std::to_string(ranks) + "\" coll=\"" + collective + "\" " + more + ">\n" + gpus + "</algo>\n";
}

Plan imported(const std::string& xml) {
  Diagnostics findings;
  Plan plan = import_msccl_xml(xml, "folder/test.xml", findings);
  EXPECT_EQ(render(plan, findings), "");
  return plan;
}

/// Returns the mnemonics of a thread block.
std::string mnemonics(const Plan& plan, size_t rank, size_t id) {
  std::string text;
  for (const Op& op : plan.gpus[rank].threadblocks[id].ops)
    text += (text.empty() ? "" : " ") + std::string(info(op.code).mnemonic);
  return text;
}

/// Returns an algorithm with these blocks, which receive from gpu 1, and a gpu 1 that sends `messages`
/// messages of input chunk 0.
std::string receiving(const std::string& blocks_of_0, int messages = 1) {
  std::string sends;
  for (int k = 0; k < messages; ++k) sends += step(k, "s", "i0", "o0");
  return algo(gpu(0, blocks_of_0) + gpu(1, block(0, 0, -1, sends)));
}

TEST(Msccl, AMessageGoesStraightToADestinationThatNobodyTouchesBefore) {
  const Plan plan = imported(receiving(block(0, -1, 1, step(0, "r", "i0", "o1"))));
  EXPECT_EQ(mnemonics(plan, 0, 0), "rlxsignal wait");
  EXPECT_EQ(mnemonics(plan, 1, 0), "rlxwait put signal");
  const ThreadBlock& sender = plan.gpus[1].threadblocks[0];
  EXPECT_EQ(sender.dests(sender.ops[1])[0].index, 1u);
  EXPECT_EQ(plan.gpus[1].remote_buffers[0].buffer, BufferKind::output);
  EXPECT_EQ(plan.gpus[0].chunks[2], 1u) << "no slot was needed";
}

TEST(Msccl, AMessageWaitsInASlotWhereItsDestinationIsReadBefore) {
  const Plan plan =
      imported(receiving(block(0, -1, 1, step(0, "cpy", "o1", "s0") + step(1, "r", "i0", "o1"))));
  EXPECT_EQ(mnemonics(plan, 0, 0), "rlxsignal copy wait copy");
  EXPECT_EQ(plan.gpus[0].chunks[2], 2u);
  const ThreadBlock& sender = plan.gpus[1].threadblocks[0];
  EXPECT_EQ(sender.dests(sender.ops[1])[0].index, 1u) << "behind the algorithm's own scratch";
}

TEST(Msccl, OtherThreadBlocksCountUnlessADependencyPutsThemBehind) {
  const std::string reads = step(0, "cpy", "o1", "s0");
  const Plan unordered =
      imported(receiving(block(0, -1, 1, step(0, "r", "i0", "o1")) + block(1, -1, -1, reads)));
  EXPECT_EQ(mnemonics(unordered, 0, 0), "rlxsignal wait copy");
  const std::string behind = step(0, "cpy", "o1", "s0", R"(depid="0" deps="0")");
  const Plan ordered = imported(
      receiving(block(0, -1, 1, step(0, "r", "i0", "o1", R"(hasdep="1")")) + block(1, -1, -1, behind)));
  EXPECT_EQ(mnemonics(ordered, 0, 0), "rlxsignal wait sem_release");
  EXPECT_EQ(mnemonics(ordered, 0, 1), "sem_acquire copy");
}

TEST(Msccl, OrderIsPassedOnByOtherThreadBlocks) {
  // Another block reads after block 1, which comes after the receiving block, whatever their numbers.
  const auto passed_on = [](int receiver, int reader) {
    const std::string behind = "depid=\"" + std::to_string(receiver) + "\" deps=\"0\" hasdep=\"1\"";
    return imported(receiving(block(receiver, -1, 1, step(0, "r", "i0", "o1", R"(hasdep="1")")) +
                              block(1, -1, -1, step(0, "nop", "i0", "o0", behind)) +
                              block(reader, -1, -1, step(0, "cpy", "o1", "s0", R"(depid="1" deps="0")"))));
  };
  EXPECT_EQ(mnemonics(passed_on(0, 2), 0, 0), "rlxsignal wait sem_release");
  EXPECT_EQ(mnemonics(passed_on(2, 0), 0, 2), "rlxsignal wait sem_release");
}

TEST(Msccl, MessagesTellASenderThatReadersAreOver) {
  // Rank 0 reads output 1, notifies rank 1 with a message, and receives another one into it.
  const std::string zero =
      block(0, 1, -1, step(0, "s", "o1", "o0")) + block(1, -1, 1, step(0, "r", "i0", "o1"));
  const std::string told = block(0, 0, 0, step(0, "r", "i0", "o0") + step(1, "s", "i0", "o1"));
  EXPECT_EQ(mnemonics(imported(algo(gpu(0, zero) + gpu(1, told))), 0, 1), "rlxsignal wait");
  const std::string untold = block(0, 0, 0, step(0, "s", "i0", "o1") + step(1, "r", "i0", "o0"));
  EXPECT_EQ(mnemonics(imported(algo(gpu(0, zero) + gpu(1, untold))), 0, 1), "rlxsignal wait copy");
}

TEST(Msccl, MessagesTellOnlyWhatIsOver) {
  // Rank 0 reads output 1 after the message that could notify rank 1.
  const std::string zero = block(0, 1, -1, step(0, "s", "i0", "o0") + step(1, "cpy", "o1", "s0")) +
                           block(1, -1, 1, step(0, "r", "i0", "o1"));
  const std::string one = block(0, 0, 0, step(0, "r", "i0", "o0") + step(1, "s", "i0", "o1"));
  EXPECT_EQ(mnemonics(imported(algo(gpu(0, zero) + gpu(1, one))), 0, 1), "rlxsignal wait copy");
}

TEST(Msccl, AMessageThatIsPassedOnTellsItInTheSameStep) {
  // The step that receives the message forwards it, and so notifies the rank.
  const std::string zero =
      block(0, 1, -1, step(0, "s", "o1", "o0")) + block(1, -1, 1, step(0, "r", "i0", "o1"));
  const std::string one = block(0, 0, 0, step(0, "rcs", "i0", "o0"));
  const Plan plan = imported(algo(gpu(0, zero) + gpu(1, one)));
  EXPECT_EQ(mnemonics(plan, 0, 1), "rlxsignal wait");
}

TEST(Msccl, ACircleOfMessagesIsLeftToTheProofs) {
  const auto waits_first = [](int rank) {
    return gpu(rank, block(0, 1 - rank, 1 - rank, step(0, "r", "i0", "o0") + step(1, "s", "i0", "o0")));
  };
  Plan plan = imported(algo(waits_first(0) + waits_first(1)));
  const Diagnostics findings = compile(plan);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].check, "deadlock");
}

TEST(Msccl, InPlaceInputAndOutputAreOneMemory) {
  // The part of rank 1 of an all-gather's output is its input, which it sends first.
  const std::string zero = gpu(0, block(0, 1, 1, step(0, "s", "i0", "o0") + step(1, "r", "i0", "o1")));
  const std::string one = gpu(1, block(0, 0, 0, step(0, "s", "i0", "o1") + step(1, "r", "i0", "o0")));
  const Plan apart = imported(algo(zero + one, R"(inplace="1")", 2, "allgather"));
  EXPECT_EQ(mnemonics(apart, 1, 0), "rlxsignal rlxwait put signal wait");
  const std::string over = gpu(1, block(0, 0, 0, step(0, "s", "i0", "o1") + step(1, "r", "i0", "o1")));
  EXPECT_EQ(mnemonics(imported(algo(zero + over, R"(inplace="1")", 2, "allgather")), 1, 0),
            "rlxsignal rlxwait put signal wait copy");
  EXPECT_EQ(mnemonics(imported(algo(zero + over, R"(inplace="0")", 2, "allgather")), 1, 0),
            "rlxsignal rlxwait put signal wait");
}

TEST(Msccl, EveryTypeOfStep) {
  const std::string middle = step(0, "rcs", "i0", "o0") + step(1, "rrc", "i0", "o1") +
                             step(2, "rrcs", "i1", "o1") + step(3, "rrs", "i1", "o0") +
                             step(4, "re", "i0", "o0") + step(5, "cpy", "i0", "s0") +
                             step(6, "nop", "i0", "o0");
  std::string sends, receives;
  for (int k = 0; k < 4; ++k) sends += step(k, "s", "i0", "o0");
  for (int k = 0; k < 3; ++k) receives += step(k, "r", "i0", "s0", R"(cnt="1")");
  const std::string sizes = R"(i_chunks="3" o_chunks="3" s_chunks="1")";
  const Plan plan =
      imported(algo(gpu(0, block(0, 1, -1, sends), sizes) + gpu(1, block(0, 2, 0, middle), sizes) +
                        gpu(2, block(0, -1, 1, receives), sizes),
                    R"(inplace="0")", 3, "allreduce", 3));
  EXPECT_EQ(mnemonics(plan, 1, 0),
            "rlxsignal wait rlxwait put signal"  // rcs
            " wait re"                           // rrc
            " wait re put signal"                // rrcs
            " wait re put signal"                // rrs
            " re copy");
  const ThreadBlock& block = plan.gpus[1].threadblocks[0];
  const auto local = [&](const Operand& operand) {
    return std::string(buffer_letters[operand.ref]) + std::to_string(operand.index);
  };
  std::string reductions;
  for (const Op& op : block.ops) {
    if (op.code != Opcode::reduce) continue;
    reductions += local(block.dests(op)[0]) + "=" + local(block.sources(op)[0]) + "+" +
                  local(block.sources(op)[1]) + " ";
  }
  // Slots 1 to 3 come after the algorithm's own scratch. A sum that is only forwarded is made in its slot.
  EXPECT_EQ(reductions, "o1=i0+s1 o1=i1+s2 s3=i1+s3 o0=o0+i0 ");
}

TEST(Msccl, DependenciesThatFollowFromEarlierOnesAreLeftOut) {
  const std::string told = R"(hasdep="1")";
  const std::string steps = step(0, "cpy", "i0", "o0", told) + step(1, "cpy", "i1", "o1", told);
  const std::string waits = step(0, "cpy", "i0", "s0", R"(depid="0" deps="1")") +
                            step(1, "cpy", "i0", "s0", R"(depid="0" deps="0")");
  const std::string blocks = block(0, -1, -1, steps) + block(1, -1, -1, waits);
  const Plan plan = imported(algo(gpu(0, blocks) + gpu(1, blocks)));
  EXPECT_EQ(mnemonics(plan, 0, 0), "copy copy sem_release");
  EXPECT_EQ(mnemonics(plan, 0, 1), "sem_acquire copy copy");
  EXPECT_EQ(plan.gpus[0].semaphores.size(), 1u);
}

TEST(Msccl, AStepThatTellsNobodyIsOverWithTheNextOneThatDoes) {
  const std::string steps = step(0, "cpy", "i0", "o0") + step(1, "cpy", "i1", "o1", R"(hasdep="1")");
  const std::string blocks =
      block(0, -1, -1, steps) + block(1, -1, -1, step(0, "cpy", "o0", "s0", R"(depid="0" deps="0")"));
  EXPECT_EQ(mnemonics(imported(algo(gpu(0, blocks) + gpu(1, blocks))), 0, 0), "copy copy sem_release");
}

TEST(Msccl, OneSemaphoreServesAllDependenciesOfTwoThreadBlocks) {
  const std::string told = R"(hasdep="1")";
  const std::string steps = step(0, "cpy", "i0", "o0", told) + step(1, "cpy", "i1", "o1", told);
  const std::string waits = step(0, "cpy", "o0", "s0", R"(depid="0" deps="0")") +
                            step(1, "cpy", "o1", "s0", R"(depid="0" deps="1")");
  const std::string blocks = block(0, -1, -1, steps) + block(1, -1, -1, waits);
  const Plan plan = imported(algo(gpu(0, blocks) + gpu(1, blocks)));
  EXPECT_EQ(mnemonics(plan, 0, 0), "copy sem_release copy sem_release");
  EXPECT_EQ(mnemonics(plan, 0, 1), "sem_acquire copy sem_acquire copy");
  EXPECT_EQ(plan.gpus[0].semaphores.size(), 1u);
}

TEST(Msccl, ElementsComeInAnyOrder) {
  const std::string told = step(0, "cpy", "i0", "o0", R"(hasdep="1")");
  const std::string waits = step(0, "cpy", "o0", "s0", R"(depid="1" deps="0")");
  const std::string blocks = block(1, -1, -1, told) + block(0, -1, -1, waits);
  const Plan plan = imported(algo(gpu(1, blocks) + gpu(0, block(0, -1, -1, told))));
  EXPECT_EQ(mnemonics(plan, 0, 0), "copy") << "nobody waits for it";
  EXPECT_EQ(mnemonics(plan, 1, 0), "sem_acquire copy");
  EXPECT_EQ(mnemonics(plan, 1, 1), "copy sem_release");
}

TEST(Msccl, OperationsHaveTheLineOfTheirStep) {
  const std::string steps = step(0, "r", "i0", "o1") + step(1, "r", "i0", "o0");
  const Plan plan = imported(receiving(block(0, -1, 1, steps), 2));
  const auto lines = [&](size_t rank) {
    std::string text;
    for (const Op& op : plan.gpus[rank].threadblocks[0].ops)
      text += (text.empty() ? "" : " ") + std::to_string(plan.line_of(op).line);
    return text;
  };
  EXPECT_EQ(plan.source[0].file, "test.xml");
  EXPECT_EQ(mnemonics(plan, 0, 0), "rlxsignal wait wait");
  EXPECT_EQ(lines(0), "4 4 5");
  EXPECT_EQ(mnemonics(plan, 1, 0), "rlxwait put signal put signal");
  EXPECT_EQ(lines(1), "10 10 10 11 11");
}

TEST(Msccl, LinesOfWindowsAndCommentsAndADeclaration) {
  const std::string xml = "\xef\xbb\xbf<?xml version=\"1.0\"?>\r\n<!-- an\r\nalgorithm -->\r\n" +
                          receiving(block(0, -1, 1, step(0, "r", "i0", "o1")));
  EXPECT_EQ(imported(xml).source[0], (SourceLine{"test.xml", 7}));
}

TEST(Msccl, SizesOfMessages) {
  const std::string gpus = gpu(0, "") + gpu(1, "");
  const Plan any = imported(algo(gpus, R"(inplace="0" minBytes="0" maxBytes="0")"));
  EXPECT_EQ(any.min_message_size, 0u);
  EXPECT_EQ(any.max_message_size, UINT64_MAX);
  EXPECT_EQ(imported(algo(gpus, R"(inplace="0" maxBytes="-1")")).max_message_size, UINT64_MAX);
  const Plan some = imported(algo(gpus, R"(inplace="0" minBytes="1024" maxBytes="4096")"));
  EXPECT_EQ(some.min_message_size, 1024u);
  EXPECT_EQ(some.max_message_size, 4096u);
}

TEST(Msccl, ChunksOfEachCollective) {
  const auto chunks = [](const std::string& collective) {
    const Plan plan = imported(algo(gpu(0, "") + gpu(1, ""), R"(inplace="0")", 2, collective, 8));
    EXPECT_EQ(all_texts(check(plan)), "");
    return plan.collective + " " + std::to_string(plan.gpus[1].chunks[0]) + " " +
           std::to_string(plan.gpus[1].chunks[1]);
  };
  EXPECT_EQ(chunks("allreduce"), "allreduce 8 8");
  EXPECT_EQ(chunks("allgather"), "allgather 4 8");
  EXPECT_EQ(chunks("reducescatter"), "reducescatter 8 4");
  EXPECT_EQ(chunks("reduce_scatter"), "reducescatter 8 4");
  EXPECT_EQ(chunks("alltoall"), "alltoall 8 8");
}

TEST(Msccl, WhatIsFoundLeavesNoPlan) {
  Diagnostics findings;
  const Plan plan =
      import_msccl_xml(algo(gpu(0, "") + gpu(1, block(0, 0, -1, step(0, "s", "i0", "o0")))), "x", findings);
  EXPECT_EQ(findings.size(), 1u);
  EXPECT_EQ(plan.ranks(), 0u);
}

}  // namespace
}  // namespace chorale
