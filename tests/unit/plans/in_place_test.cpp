// These tests check also_in_place() on shipped plans.

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "chorale/compile.hpp"
#include "chorale/content_hash.hpp"
#include "chorale/make_plan.hpp"
#include "chorale/proof.hpp"

namespace chorale {
namespace {

size_t findings_in_place(Plan plan) {
  plan.inplace = true;
  return prove_plan(plan).findings.size();
}

TEST(AlsoInPlace, AddsTheSynchronisationsThatAPlanNeeds) {
  const Plan plan = make_plan("allreduce_one_shot_b4", 2);
  EXPECT_GT(findings_in_place(plan), 0u) << "the plan is right in place as it is, so this tests nothing";
  const std::optional<Plan> both = also_in_place(plan);
  ASSERT_TRUE(both);
  EXPECT_EQ(findings_in_place(*both), 0u);
  EXPECT_FALSE(both->inplace);
  EXPECT_EQ(prove_plan(*both).findings.size(), 0u);
  EXPECT_EQ(refute_certificate(*both), "");
  EXPECT_NE(content_hash(*both), content_hash(plan));
}

TEST(AlsoInPlace, LeavesAPlanThatIsRightAlready) {
  // In place, a rank of the last two copies its own part onto itself, and that does nothing.
  for (const std::string name :
       {"reducescatter_packets_b4", "reducescatter_staged_b64", "allreduce_all_pairs_b16",
        "allgather_by_peer_b64", "broadcast_direct_b16", "reduce_direct_b64"}) {
    const Plan plan = make_plan(name, 4);
    const std::optional<Plan> both = also_in_place(plan);
    ASSERT_TRUE(both) << name;
    EXPECT_EQ(content_hash(*both), content_hash(plan)) << name;
  }
}

TEST(AlsoInPlace, RefusesWhatNoSynchronisationMends) {
  // In place, a part that another rank needs is overwritten before it is sent.
  EXPECT_FALSE(also_in_place(make_plan("alltoall_packets_b4", 2)));
  for (const int ranks : {2, 3, 8})
    EXPECT_TRUE(also_in_place(make_plan("alltoall_packets_b4", ranks, {{"copies", "true"}}))) << ranks;
  // In place, a thread block unpacks a part that another one still sends.
  EXPECT_FALSE(also_in_place(make_plan("allgather_packets_b4", 4)));
  EXPECT_TRUE(also_in_place(make_plan("allgather_packets_b4", 4, {{"copies", "true"}})));
}

}  // namespace
}  // namespace chorale
