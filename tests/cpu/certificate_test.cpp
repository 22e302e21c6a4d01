/// \file
/// Tests plans that carry a certificate of what was proved.

#include "chorale/proof.hpp"
#include "tests/cpu/harness.hpp"

namespace chorale::test {
namespace {

Plan shipped() { return load(source_dir() / "plans/shipped/allgather_ring_2.json"); }

Plan certified() {
  Plan plan = shipped();
  const Proof proof = prove_plan(plan, {}, true);
  EXPECT_TRUE(proof.findings.empty());
  plan.extension.verified = certificate(plan, proof.facts);
  return plan;
}

/// Runs a plan and returns the error of the first rank that fails.
template <class Load>
std::string run_with(bool require_proof, Load&& load) {
  std::vector<std::string> wrong(2);
  Config config = Config::load();
  config.require_proof = require_proof;
  run_local(2, [&](World& world) {
    Executor executor(world, config);
    const Plan plan = load(uint32_t(world.rank()));
    try {
      wrong[size_t(world.rank())] = run_rank(world, executor, plan, {.bytes = 800});
    } catch (const UsageError& error) {
      wrong[size_t(world.rank())] = error.what();
    }
  });
  return wrong[0].empty() ? wrong[1] : wrong[0];
}

TEST(Certificate, IsAskedForWhereRequired) {
  EXPECT_EQ(run_with(false, [](uint32_t) { return shipped(); }), "");
  EXPECT_EQ(run_with(true, [](uint32_t) { return certified(); }), "");
  EXPECT_EQ(run_with(true, [](uint32_t rank) { return read(write(certified()), rank); }), "");
  EXPECT_EQ(
      run_with(true, [](uint32_t) { return shipped(); }),
      "plan 'allgather_ring' has no certificate that holds: there is none; require_proof is set "
      "(code). chorale compile --certify writes plans with one; chorale check PLAN --certify FILE proves a "
      "plan and writes a copy with one");
}

TEST(Certificate, OfAnotherPlanIsRefused) {
  const auto changed = [](uint32_t) {
    Plan plan = certified();
    plan.gpus[0].threadblocks[0].ops[0].participants = 1;
    return plan;
  };
  for (const bool require : {false, true}) {
    const std::string said = run_with(require, changed);
    EXPECT_NE(said.find("rank 0 was changed after the plan was proved"), std::string::npos) << said;
  }
}

TEST(Certificate, ThatDoesNotHoldOnOneRankIsToldToAll) {
  const auto changed = [](uint32_t rank) {
    Plan plan = certified();
    if (rank == 1) plan.gpus[0].threadblocks[0].ops[0].participants = 1;
    return plan;
  };
  const std::string said = run_with(false, changed);
  EXPECT_EQ(said.find("rank 1: plan 'allgather_ring' has no certificate that holds: rank 0 was changed"), 0u)
      << said;
}

}  // namespace
}  // namespace chorale::test
