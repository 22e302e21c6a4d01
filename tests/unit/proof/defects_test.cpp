// These plans have faults of MSCCL++'s DSL and examples, each in a plan of the same shape, beside the plan
// without the fault. A plan cannot express that a packet's flag is the same at each replay of a graph (D6);
// the litmus tests have that. Scratch that wraps in a pipeline (D5) is a limit of MSCCL++'s executor, see
// target_test.cpp.

#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

std::string findings_of(const Plan& plan) { return all_texts(prove_plan(plan).diagnostics()); }

void signal_and_wait(Plan& plan, uint32_t rank, bool relaxed = false) {
  control(plan, relaxed ? Opcode::relaxed_signal : Opcode::signal, 0, rank);
  control(plan, relaxed ? Opcode::relaxed_wait : Opcode::wait, 0, rank);
}

/// Two ranks reduce half of the chunks each, with the switch, from scratch[8:16] into scratch[to:to + 8].
Plan reduced_by_switch(uint64_t to) {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  for (uint32_t rank = 0; rank < 2; ++rank) {
    plan.gpus[rank].chunks[size_t(BufferKind::scratch)] = 16;
    add(block(plan, rank), Opcode::copy, {in(0, 8)}, {scratch(8, 8)});
    signal_and_wait(plan, rank);
    add(block(plan, rank), Opcode::switch_reduce_broadcast, {at(1, 8 + 4 * rank, 4)},
        {at(1, to + 4 * rank, 4)}, {}, ChannelType::switched);
    signal_and_wait(plan, rank);
    add(block(plan, rank), Opcode::copy, {scratch(0, 8)}, {out(0, 8)});
  }
  return plan;
}

TEST(Defects, D1SwitchReductionStoredWhereItWasLoaded) {
  EXPECT_EQ(findings_of(reduced_by_switch(0)), "");
  EXPECT_NE(findings_of(reduced_by_switch(8)), "");
}

TEST(Defects, D2ReadsForgottenBetweenTwoCopies) {
  for (const bool synchronised : {true, false}) {
    Plan plan = two_ranks();
    plan.inplace = true;
    add(block(plan), Opcode::copy, {in(0)}, {scratch(0)});
    if (synchronised) add(block(plan), Opcode::nop);
    add(block(plan), Opcode::copy, {in(1)}, {in(0)});
    EXPECT_EQ(findings_of(plan) == "", synchronised);
  }
}

/// Each channel has as many signals as waits, but each rank waits for what the other one does after its own
/// wait.
TEST(Defects, D3CrossedWaits) {
  for (const bool crossed : {false, true}) {
    Plan plan = two_ranks();
    for (uint32_t rank = 0; rank < 2; ++rank) {
      if (!crossed) control(plan, Opcode::signal, 1 - rank, rank);
      control(plan, Opcode::wait, rank, rank);
      if (crossed) control(plan, Opcode::signal, 1 - rank, rank);
    }
    Diagnostics found;
    pass::pairing(plan, found);
    EXPECT_EQ(all_texts(found), "");
    EXPECT_EQ(findings_of(plan).find("[deadlock]") != std::string::npos, crossed);
  }
}

/// A store goes through the switch into a peer's output, and only a relaxed signal follows it.
TEST(Defects, D7RelaxedExitOfAZeroCopyBroadcast) {
  for (const bool relaxed : {false, true}) {
    Plan plan = two_ranks();
    plan.collective = "allgather";
    for (uint32_t rank = 0; rank < 2; ++rank) {
      plan.gpus[rank].chunks[size_t(BufferKind::input)] = 4;
      signal_and_wait(plan, rank);
      add(block(plan, rank), Opcode::switch_broadcast, {in(0, 4)}, {at(0, 4 * rank, 4)}, {},
          ChannelType::switched);
      signal_and_wait(plan, rank, relaxed);
    }
    EXPECT_EQ(findings_of(plan) != "", relaxed);
  }
}

/// A launch ends when the proxies have read, so the application may then overwrite what they send. A thread
/// block may not without a flush.
TEST(Defects, D8SourceOverwrittenWhileTheProxyReads) {
  for (const bool flushed : {true, false}) {
    for (const bool overwritten : {false, true}) {
      Plan plan = two_ranks();
      add(block(plan), Opcode::copy, {in(0)}, {scratch(0)});
      add(block(plan), Opcode::put_with_signal, {scratch(0)}, {at(2, 1)}, {0}, ChannelType::port);
      control(plan, Opcode::wait, 0, 1, 0, ChannelType::port);
      if (flushed) control(plan, Opcode::flush, 0, 0, 0, ChannelType::port);
      if (overwritten) add(block(plan), Opcode::copy, {in(1)}, {scratch(0)});
      const bool raced = findings_of(plan).find("the proxy reads") != std::string::npos;
      EXPECT_EQ(raced, overwritten && !flushed);
    }
  }
}

}  // namespace
}  // namespace chorale
