// Proofs that examine one of several copies must find the same in every mutant as proofs that examine all.
// Proofs with facts examine all.

#include "chorale/proof.hpp"
#include "mutants.hpp"
#include "tests/mutation/campaign.hpp"

namespace chorale::mutation {
namespace {

TEST(Copies, OfMutantsTellWhatTheWholeTells) {
  Choice choice{.operators = {}, .sample = 20};
  for (const Operator& of : operators()) choice.operators.push_back(&of);
  Judge judge;
  judge.check = [](const Plan& plan) {
    Diagnostics findings = check(plan);
    if (!findings.empty()) return findings;
    findings = prove_plan(plan).diagnostics();
    EXPECT_EQ(render(plan, findings), render(plan, prove_plan(plan, {}, true).diagnostics()));
    return findings;
  };
  for (const char* name :
       {"allreduce_all_pairs_4", "allreduce_two_shot_b16_2", "alltoall_direct_b16_2", "allgather_direct_4",
        "reducescatter_packets_b4_4", "broadcast_direct_b16_2", "allreduce_one_shot_b4_4"}) {
    size_t killed = 0;
    const std::vector<Mutant> mutants =
        mutate(load(std::string(CHORALE_SOURCE_DIR) + "/plans/shipped/" + name + ".json"), choice, judge);
    for (const Mutant& mutant : mutants) killed += mutant.fate == Fate::killed;
    EXPECT_GT(killed, 30u) << name;
    EXPECT_LT(killed, mutants.size()) << name;
  }
}

}  // namespace
}  // namespace chorale::mutation
