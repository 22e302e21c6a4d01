// These tests check plans whose order depends on the speed of thread blocks.

#include <utility>

#include "chorale/witness.hpp"
#include "tests/unit/proof/findings.hpp"

namespace chorale {
namespace {

std::string undecided(const Plan& plan) { return found("decidable", plan); }

Plan lock() {
  Plan plan = two_ranks();
  plan.gpus[0].semaphores[0] = 1;
  for (uint32_t on = 0; on < 2; ++on) {
    control(plan, Opcode::sem_acquire, 0, 0, on);
    control(plan, Opcode::sem_release, 0, 0, on);
  }
  return plan;
}

TEST(Decidable, SeveralTake) {
  Plan plan = lock();
  EXPECT_EQ(
      undecided(plan),
      "this sem_acquire is in thread block 1, but thread block 0 also takes from semaphore 0 of rank 0: "
      "which of them comes first depends on their speed at 0.1.0\n"
      "  thread block 0 has 1 such operation, here; thread block 1 has 1 at 0.0.0\n");
  const std::string help = prove_plan(plan).findings[0].diagnostic.help;
  EXPECT_TRUE(help.starts_with("move the sem_acquire to thread block 0, or give each block a semaphore"))
      << help;
  plan.extension.bounded_proof = true;
  EXPECT_EQ(undecided(plan), "");
  const Proof proof = prove_plan(plan, {}, true);
  EXPECT_TRUE(proof.findings.empty());
  EXPECT_TRUE(proof.facts.bounded);
  EXPECT_NE(certificate(plan, proof.facts).find(R"("verdict":"bounded")"), std::string::npos);
}

/// A block's loop takes what another block waits for. It must be first again and again, and there are more
/// orders than the proof tries.
TEST(Decidable, OfManyOrdersSomeAreDrawn) {
  Plan plan = two_ranks();
  plan.extension.bounded_proof = true;
  plan.gpus[0].semaphores = {2, 2, 0};
  const auto step = [&](Opcode code, uint32_t semaphore, uint32_t on) {
    control(plan, code, semaphore, 0, on);
  };
  const auto pipeline = [&](uint32_t on, uint32_t body) {
    Op& op = add(block(plan, 0, on), Opcode::pipeline);
    op.body = body;
    op.unit_bytes = 192;
    op.chunks = 1;
  };
  pipeline(0, 4);
  step(Opcode::sem_acquire, 0, 0);
  step(Opcode::sem_release, 1, 0);
  step(Opcode::sem_acquire, 1, 0);
  step(Opcode::sem_release, 1, 0);
  step(Opcode::sem_release, 0, 0);
  pipeline(1, 1);
  step(Opcode::sem_release, 0, 1);
  pipeline(1, 1);
  step(Opcode::sem_acquire, 1, 1);
  step(Opcode::sem_acquire, 0, 1);
  const Proof proof = prove_plan(plan);
  ASSERT_EQ(proof.findings.size(), 1u);
  EXPECT_EQ(proof.findings[0].kind, Finding::Kind::cycle);
  EXPECT_EQ(place_of(proof.findings[0].events[0].at), "0.0.3");
  // explain() executes the same order again.
  EXPECT_FALSE(explain(plan, proof.findings[0]).events.empty());
}

TEST(Decidable, SeveralAdd) {
  Plan plan = two_ranks();
  for (uint32_t on = 0; on < 2; ++on) {
    control(plan, Opcode::signal, 0, 0, on);
    control(plan, Opcode::wait, 0, 1, 0);
  }
  EXPECT_EQ(undecided(plan),
            "this signal is in thread block 1, but thread block 0 also adds to memory channel 0 of rank 0: "
            "which of them comes first depends on their speed at 0.1.0\n"
            "  thread block 0 has 1 such operation, here; thread block 1 has 1 at 0.0.0\n");
}

/// A block that does most of the waits of a channel is where the others belong.
TEST(Decidable, TheFewerOnesAreToMove) {
  Plan plan = two_ranks();
  for (uint32_t on = 0; on < 3; ++on) {
    control(plan, Opcode::signal, 0, 0, 0);
    control(plan, Opcode::wait, 0, 1, on > 0);
  }
  EXPECT_EQ(undecided(plan),
            "this wait is in thread block 0, but thread block 1 also takes from memory channel 0 of rank 1: "
            "which of them comes first depends on their speed at 1.0.0\n"
            "  thread block 1 has 2 such operations, the first one here; thread block 0 has 1 at 1.1.0\n");
}

TEST(Decidable, WhoComesToABarrier) {
  Plan plan = two_ranks();
  sync(plan);
  EXPECT_EQ(undecided(plan), "");
  for (uint32_t on = 0; on < 2; ++on) control(plan, Opcode::barrier, 1, 0, on).participants = 1;
  EXPECT_EQ(undecided(plan),
            "barrier 1 of rank 0 is for 1 thread block, but 2 come to it: which blocks wait for each other "
            "depends on their "
            "speed at "
            "0.0.1\n");
}

TEST(Decidable, FirstOfTwoSignalsIsAnybodys) {
  // After its first wait rank 1 reads what block 0 has put. The signal of block 1 may have come first, even
  // if that block starts late.
  Plan plan = two_ranks();
  plan.extension.bounded_proof = true;
  add(block(plan, 0, 0), Opcode::put, {in(0)}, {at(2, 0)}, {}, ChannelType::memory);
  control(plan, Opcode::signal, 0, 0, 0);
  control(plan, Opcode::wait, 1, 0, 1);
  control(plan, Opcode::signal, 0, 0, 1);
  control(plan, Opcode::wait, 0, 1, 0);
  add(block(plan, 1, 0), Opcode::copy, {scratch(0)}, {out(0)});
  control(plan, Opcode::wait, 0, 1, 0);
  control(plan, Opcode::signal, 1, 1, 1);
  EXPECT_NE(found("races", plan), "");
  // After both waits the put has certainly arrived.
  std::swap(block(plan, 1, 0).ops[1], block(plan, 1, 0).ops[2]);
  EXPECT_EQ(found("races", plan), "");
}

}  // namespace
}  // namespace chorale
