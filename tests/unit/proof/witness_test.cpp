// These tests check counter-examples: what they show of a finding, and that it follows from the order that
// the proof keeps.

#include "chorale/witness.hpp"

#include "compiler/proof/explain/paths.hpp"
#include "tests/has.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

using test::has;

using proof::History;

void put_by_port(Plan& plan, const Operand& from, uint32_t remote, uint64_t index) {
  add(block(plan), Opcode::put, {from}, {at(remote, index)}, {0}, ChannelType::port);
}

Finding first_finding(const Plan& plan, const std::vector<std::string>& allow = {}) {
  const Proof proof = prove_plan(plan, allow);
  return proof.findings.empty() ? Finding{} : proof.findings[0];
}

std::string shown(const Plan& plan, const std::vector<std::string>& allow = {}) {
  return render(explain(plan, first_finding(plan, allow)));
}

/// Rank 0 signals rank 1 after a part of its puts, and continues.
Plan told_too_early() {
  Plan plan = two_ranks();
  put(plan, in(0), 2, 0);
  hand_over(plan, 0);
  put(plan, in(1), 2, 1);
  copy(plan, scratch(0, 2), out(0, 2), 0, 1);
  return plan;
}

TEST(Witness, TwoBlocksWithoutOrder) {
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0), 0);
  copy(plan, scratch(0), out(0), 1);
  EXPECT_EQ(shown(plan),
            "  would order them: a semaphore that is released after rank 0, thread block 0, op 0 and "
            "acquired before rank 0, thread block 1, op 0\n"
            "  counter-example:\n"
            "   A 1  launch 1  rank 0, block 0  op 0  copy input[0:1] -> scratch[0:1]\n"
            "   B 2  launch 1  rank 0, block 1  op 0  copy scratch[0:1] -> output[0:1]\n"
            "  A overwrites scratch[0:1] of rank 0, B reads scratch[0:1] of rank 0\n"
            "  B knows nothing of the progress of rank 0, thread block 0\n"
            "  missing: any path from A to B that publishes what A wrote\n");
}

TEST(Witness, HowFarTheOtherSideIsKnown) {
  const std::string text = shown(told_too_early());
  EXPECT_TRUE(has(text, "A ")) << text;
  EXPECT_TRUE(has(text, "signal memory channel 0 to rank 1")) << text;
  EXPECT_TRUE(
      has(text,
          "B knows the progress of rank 0, thread block 0 only up to signal at rank 0, thread block 0, op 1"))
      << text;
  EXPECT_TRUE(has(text,
                  "would order them: a signal of rank 0 after rank 0, thread block 0, op 2, for which rank 1 "
                  "waits before rank 1, thread block 0, op 1"))
      << text;
}

TEST(Witness, ARelaxedSignalPublishesNothing) {
  Plan plan = two_ranks();
  put(plan, in(0), 2, 0);
  add(block(plan, 0), Opcode::nop);
  hand_over(plan, 0, 0, true);
  copy(plan, scratch(0), out(0), 0, 1);
  const std::string text = shown(plan);
  EXPECT_TRUE(has(text, "relaxed_wait memory channel 0 from rank 0  (after 2, whose writes it may not see)"))
      << text;
  EXPECT_TRUE(has(text,
                  "would order them: signal for relaxed_signal at rank 0, thread block 0, op 2, wait for "
                  "relaxed_wait at rank 1, thread block 0, op 0"))
      << text;
}

/// Rank 0 puts two chunks and signals. On rank 1, block 0 waits and block 1 reads a chunk.
Plan waits_in_the_other_block() {
  Plan plan = two_ranks();
  put(plan, in(0), 2, 0);
  put(plan, in(1), 2, 1);
  hand_over(plan, 0);
  copy(plan, scratch(0), out(0), 1, 1);
  return plan;
}

TEST(Witness, AWaitInAnotherBlock) {
  const std::string remedy =
      "would order them: the wait of rank 1, thread block 0, op 0 in thread block 1 instead of 0\n";
  Plan plan = waits_in_the_other_block();
  EXPECT_TRUE(has(shown(plan), remedy)) << shown(plan);
  // If block 0 reads a chunk too, it needs the wait itself.
  copy(plan, scratch(1), out(1), 0, 1);
  EXPECT_FALSE(has(shown(plan), "instead of")) << shown(plan);
  // Block 0 may also race with an operation that it did before the wait. The remedy stays the same.
  plan = two_ranks();
  put(plan, in(0), 2, 0, 1);
  copy(plan, scratch(0), out(0), 1, 0);
  put(plan, in(0), 2, 0);
  hand_over(plan, 0);
  copy(plan, scratch(0), out(0), 1, 1);
  std::string all;
  for (const Finding& finding : prove_plan(plan).findings) all += render(explain(plan, finding));
  EXPECT_TRUE(has(all, "the wait of rank 1, thread block 0, op 1 in thread block 1 instead of 0")) << all;
  // A wait for something else orders nothing.
  plan = waits_in_the_other_block();
  std::swap(block(plan, 0).ops[0], block(plan, 0).ops[2]);
  EXPECT_FALSE(has(shown(plan), "instead of")) << shown(plan);
}

/// Rank 0 puts when rank 1 has signalled. On rank 1, both blocks read, but only block 0 waits.
TEST(Witness, AReadThatMissesItsWriteIsToComeAfterIt) {
  Plan plan = two_ranks();
  plan.collective = "allgather";
  for (Gpu& gpu : plan.gpus) gpu.chunks[size_t(BufferKind::input)] = 4;
  hand_over(plan, 1);
  put(plan, in(0), 2, 0);
  put(plan, in(1), 2, 1);
  hand_over(plan, 0);
  copy(plan, scratch(0), out(0), 1, 1);
  copy(plan, scratch(1), out(1), 0, 1);
  const Finding finding = first_finding(plan, {"values"});
  EXPECT_EQ(finding.diagnostic.text,
            "this reads scratch[0:1] of rank 1, which another operation overwrites: nothing orders the two");
  EXPECT_EQ(place_of(*finding.diagnostic.at), "1.1.0");
  const Witness witness = explain(plan, finding);
  EXPECT_EQ(
      witness.remedies,
      std::vector<std::string>{
          "a semaphore that is released after rank 1, thread block 0, op 1 in thread block 0 and acquired "
          "before rank 1, thread block 1, op 0 in thread block 1, or a barrier of the two thread blocks "
          "there"});
  EXPECT_EQ(witness.wrong_order, "rank 1, thread block 1, op 0 comes before rank 0, thread block 0, op 1");
}

/// A slot of scratch holds data of rank 1 and then of rank 0, and block 1 of rank 1 is to read the second.
TEST(Witness, AReadOfOlderDataIsToComeAfterTheWrite) {
  Plan plan = two_ranks();
  plan.collective = "allgather";
  for (Gpu& gpu : plan.gpus) gpu.chunks[size_t(BufferKind::input)] = 4;
  copy(plan, in(3), scratch(0), 1, 1);
  nop(plan, 1, 1);
  copy(plan, scratch(0), out(7), 1, 1);  // a read of the older data
  control(plan, Opcode::signal, 0, 1, 1);
  control(plan, Opcode::wait, 0, 0);
  put(plan, in(0), 2, 0);
  put(plan, in(1), 2, 1);
  hand_over(plan, 0);
  copy(plan, scratch(0), out(0), 1, 1);
  copy(plan, scratch(1), out(1), 0, 1);
  const std::string text = shown(plan, {"values"});
  EXPECT_TRUE(has(text, "missing: any path from B to A that publishes what B wrote")) << text;
  EXPECT_TRUE(has(text, "and A is in block 1")) << text;
  EXPECT_TRUE(has(text,
                  "would order them: a semaphore that is released after rank 1, thread block 0, op 0 in "
                  "thread block 0 and acquired before rank 1, thread block 1, op 4"))
      << text;
  EXPECT_FALSE(has(text, "a signal of rank 1 after")) << text;
}

TEST(Witness, AProxyThatIsNotWaitedFor) {
  Plan plan = two_ranks();
  put_by_port(plan, scratch(0), 2, 4);
  copy(plan, in(0), scratch(0));
  const std::string text = shown(plan, {"values"});
  EXPECT_TRUE(has(text, "rank 0, proxy of block 0  op 0  put scratch[0:1] -> scratch[4:5] of rank 1"))
      << text;
  EXPECT_TRUE(has(text, "would order them: flush after rank 0, thread block 0, op 0")) << text;
}

TEST(Witness, ACycle) {
  Plan plan = two_ranks();
  for (const uint32_t rank : {0, 1}) {
    control(plan, Opcode::wait, 0, rank);
    control(plan, Opcode::signal, 0, rank);
  }
  EXPECT_EQ(shown(plan),
            "  counter-example:\n"
            "   A 1  launch 1  rank 0, block 0  op 0  wait memory channel 0 from rank 1  (after 2)\n"
            "     2  launch 1  rank 1, block 0  op 1  never: signal memory channel 0 to rank 0\n"
            "   B 3  launch 1  rank 1, block 0  op 0  wait memory channel 0 from rank 0  (after 4)\n"
            "     4  launch 1  rank 0, block 0  op 1  never: signal memory channel 0 to rank 1\n"
            "  A's answer comes only after B, B's answer comes only after A\n");
}

TEST(Witness, ASignalThatIsNeverSent) {
  Plan plan = two_ranks();
  control(plan, Opcode::sem_acquire, 0, 0);
  const std::string text = shown(plan);
  EXPECT_TRUE(has(text, "release #1 on semaphore 0 of rank 0 is never sent: nobody sends there")) << text;
}

TEST(Witness, AValue) {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  for (Gpu& gpu : plan.gpus) gpu.chunks[0] = gpu.chunks[1] = 1;
  for (const uint32_t rank : {0, 1}) copy(plan, in(0), out(0), 0, rank);
  const std::string text = shown(plan);
  EXPECT_TRUE(
      has(text, "it should hold input[0:1] of rank 0, input[0:1] of rank 1\n  it holds input[0:1] of rank 0"))
      << text;
  // The finding quotes the only operation already.
  EXPECT_FALSE(has(text, "A 1  launch 1")) << text;
}

TEST(Witness, NoMoreThanThereIsRoomFor) {
  // A token goes round 8 times between four blocks. The last one's write is not signalled.
  Plan plan = two_ranks();
  copy(plan, in(0), scratch(0));
  for (int round = 0; round < 8; ++round) {
    hand_over(plan, 0);
    hand_over(plan, 1);
  }
  copy(plan, in(1), scratch(0), 1);
  const Witness witness = explain(plan, first_finding(plan));
  EXPECT_LE(witness.events.size(), Witness::most_events);
  for (const WitnessEdge& edge : witness.edges) {
    EXPECT_LT(edge.from, witness.events.size());
    EXPECT_LT(edge.to, witness.events.size());
  }
}

/// The graph of causes agrees with the proof's clocks about the first culprit.
void expect_agreement(const Plan& plan) {
  const Finding finding = first_finding(plan, {"values"});
  ASSERT_EQ(finding.kind, Finding::Kind::race);
  const proof::Memory memory(plan, proof::list_messages(plan)[0], finding.setting.one_storage);
  proof::SymbolicExecutor executor(plan, memory);
  History history(executor);
  proof::Choices choices;
  executor.run(finding.setting.launches, choices, history);
  const uint32_t first = history.find(finding.events[0]), second = history.find(finding.events[1]);
  ASSERT_NE(first, History::none);
  ASSERT_NE(second, History::none);
  const proof::Past past(history, second, finding.events[0].writes);
  EXPECT_FALSE(past.has(first));
  uint32_t known = 0;
  const std::vector<proof::Node>& nodes = history.nodes();
  for (uint32_t at = 0; at < nodes.size(); ++at) {
    if (past.has(at) && nodes[at].kind == proof::Node::Kind::sync && nodes[at].chain == nodes[first].chain)
      known = std::max(known, nodes[at].segment + 1);
  }
  EXPECT_EQ(known, finding.known);
}

TEST(Witness, TheGraphAgreesWithTheClocks) {
  expect_agreement(told_too_early());
  Plan plan = two_ranks();
  put(plan, in(0), 2, 0);
  hand_over(plan, 0);
  copy(plan, scratch(0), out(0), 0, 1);
  expect_agreement(plan);  // the next launch puts before this one has read
}

TEST(Witness, ShrinkingKeepsTheFinding) {
  Plan plan = told_too_early();
  for (int more = 0; more < 5; ++more) {
    hand_over(plan, 1);
    copy(plan, in(2), out(2 + more), 1, 0);
    copy(plan, in(3), out(2 + more), 1, 1);
  }
  const Finding finding = first_finding(plan);
  const Shrunk shrunk = shrink(plan, finding);
  size_t left = 0;
  for (const Gpu& gpu : shrunk.plan.gpus) {
    for (const ThreadBlock& of : gpu.threadblocks) left += of.ops.size();
  }
  EXPECT_EQ(left, 2u);
  EXPECT_EQ(shrunk.finding.proof, finding.proof);
  EXPECT_LE(shrunk.proofs, 500u);
  EXPECT_EQ(check(shrunk.plan).size(), 0u);
  EXPECT_LE(shrink(plan, finding, 3).proofs, 3u);
}

TEST(Witness, ShrinkingKeepsLaunchesApart) {
  // The operations that order the two within a launch must stay, because otherwise they would race there.
  Plan plan = two_ranks();
  put(plan, in(0), 2, 0, 1);
  hand_over(plan, 1);
  copy(plan, scratch(0), out(0), 0, 0);
  copy(plan, in(1), out(1), 0, 0);
  const Finding finding = first_finding(plan);
  ASSERT_EQ(finding.proof, "replay");
  const Shrunk shrunk = shrink(plan, finding);
  EXPECT_EQ(shrunk.finding.proof, "replay");
  EXPECT_EQ(shrunk.plan.gpus[0].threadblocks[0].ops.size(), 2u);
  EXPECT_EQ(shrunk.plan.gpus[1].threadblocks[0].ops.size(), 2u);
}

/// A plan without operations lacks every output, too.
TEST(Witness, ShrinkingKeepsWhatIsAtFault) {
  Plan plan = two_ranks();
  plan.collective = "allgather";
  for (uint32_t rank = 0; rank < 2; ++rank) {
    plan.gpus[rank].chunks[0] = 1;
    plan.gpus[rank].chunks[1] = 2;
    copy(plan, in(0), out(0), 0, rank);
    put(plan, in(0), 1, rank, rank);
  }
  const auto shrunk_ops = [](const Plan& plan) {
    const std::vector<Finding> findings = prove_plan(plan, all_but("values")).findings;
    const Shrunk shrunk = shrink(plan, findings.at(0));
    size_t left = 0;
    for (const Gpu& gpu : shrunk.plan.gpus) {
      for (const ThreadBlock& of : gpu.threadblocks) left += of.ops.size();
    }
    return left;
  };
  // Rank 1 copies its input to the chunk of rank 0.
  EXPECT_EQ(shrunk_ops(plan), 1u);
  // Nothing writes the output of rank 1, and nothing else is wrong.
  Plan half = two_ranks();
  half.collective = "broadcast";
  for (Gpu& gpu : half.gpus) gpu.chunks[0] = gpu.chunks[1] = 1;
  copy(half, in(0), out(0));
  EXPECT_EQ(shrunk_ops(half), 1u);
}

}  // namespace
}  // namespace chorale
