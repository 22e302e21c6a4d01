// These tests check counter-examples of mutants. Everything that a proof finds in them is shown in few lines,
// at the author's lines.

#include "chorale/witness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "chorale/compile.hpp"
#include "chorale/json.hpp"
#include "tests/mutation/campaign.hpp"

namespace chorale::mutation {
namespace {

struct Seen {
  size_t findings = 0, whole = 0;
  std::set<Finding::Kind> kinds;
};

void expect_small(const Plan& plan, const Finding& finding, Seen& seen) {
  const Witness witness = explain(plan, finding);
  const std::string text = render(plan, finding.diagnostic) + render(witness);
  ++seen.findings;
  seen.kinds.insert(finding.kind);
  seen.whole += witness.left_out == 0;
  EXPECT_LE(witness.events.size(), Witness::most_events) << text;
  EXPECT_FALSE(witness.events.empty() && witness.because.empty()) << text;
  std::set<uint32_t> ranks;
  size_t culprits = 0;
  for (const WitnessEvent& event : witness.events) {
    ranks.insert(event.at.rank);
    culprits += event.part == WitnessEvent::Part::culprit;
    EXPECT_TRUE(event.who == ProofEvent::Who::application || event.line.line) << text;
  }
  EXPECT_LE(ranks.size(), Witness::most_ranks) << text;
  EXPECT_TRUE(culprits || witness.events.empty()) << text;
  if (finding.kind == Finding::Kind::race) {
    // An operation whose operands, or pairs of them, overlap is one event.
    const bool one = std::any_of(witness.events.begin(), witness.events.end(),
                                 [](const WitnessEvent& event) { return event.mark == "AB"; });
    EXPECT_TRUE(culprits == 2 || one) << text;
  }
}

void expect_small(const std::string& name, Seen& seen) {
  const Plan plan = load(std::string(CHORALE_SOURCE_DIR) + "/plans/shipped/" + name + ".json");
  Choice choice;
  choice.sample = 12;
  for (const Operator& one : operators()) choice.operators.push_back(&one);
  Judge judge;
  judge.check = [&](const Plan& mutant) {
    Diagnostics findings = check(mutant);
    if (!findings.empty()) return findings;
    const Proof proof = prove_plan(mutant);
    for (const Finding& finding : proof.findings) expect_small(mutant, finding, seen);
    return proof.diagnostics();
  };
  judge.run = [](const Plan&) { return std::nullopt; };
  judge.explain = [](const Plan&, const Plan&, const Mutant&) { return Reason{}; };
  mutate(plan, choice, judge);
}

TEST(Witness, OfMutantsAreSmall) {
  Seen seen;
  for (const char* name : {"allreduce_ring_4", "allreduce_two_shot_4", "allreduce_two_level_4",
                           "allreduce_all_pairs_8", "allgather_packets_4", "alltoall_direct_4"})
    expect_small(name, seen);
  EXPECT_GT(seen.findings, 100u);
  EXPECT_GE(seen.kinds.size(), 4u);
  EXPECT_GE(seen.whole * 10, seen.findings * 9)
      << "too much is left out: " << seen.whole << " of " << seen.findings;
}

TEST(Witness, OfManyRanksShowsFour) {
  // Every rank of a ring waits before it signals.
  Plan plan = load(std::string(CHORALE_SOURCE_DIR) + "/plans/shipped/allreduce_ring_8.json");
  for (Gpu& gpu : plan.gpus) {
    std::vector<Op>& ops = gpu.threadblocks[0].ops;
    const auto wait =
        std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.code == Opcode::wait; });
    ASSERT_NE(wait, ops.end());
    std::rotate(ops.begin(), wait, wait + 1);
  }
  const Proof proof = prove_plan(plan);
  ASSERT_FALSE(proof.findings.empty());
  ASSERT_EQ(proof.findings[0].kind, Finding::Kind::cycle);
  const Witness witness = explain(plan, proof.findings[0]);
  std::set<uint32_t> ranks;
  for (const WitnessEvent& event : witness.events) ranks.insert(event.at.rank);
  EXPECT_EQ(ranks.size(), Witness::most_ranks);
  EXPECT_EQ(witness.events.size() + witness.left_out, proof.findings[0].events.size());
}

}  // namespace
}  // namespace chorale::mutation
