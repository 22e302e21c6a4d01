// These find plans; tests/golden/synthesize also runs some.

#include "chorale/synthesize.hpp"

#include <gtest/gtest.h>

#include "chorale/json.hpp"
#include "chorale/make_plan.hpp"
#include "chorale/usage_error.hpp"
#include "networks.hpp"

namespace chorale {
namespace {

std::string message_of(const SynthesisCall& call, const std::string& topology) {
  try {
    synthesize(call, test::h200(), load_topology(topology));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Synthesize, ComesCloseToItsBound) {
  for (const char* topology : {"ring:4", "switch:4", "mesh:4", "pcie:4"}) {
    for (const char* collective : {"allgather", "reducescatter", "allreduce", "alltoall", "broadcast"}) {
      const Synthesis found =
          synthesize({.collective = collective, .bytes = 64 << 20}, test::h200(), load_topology(topology));
      EXPECT_LE(found.ns, found.class_ns * 1.3) << topology << ", " << collective << '\n'
                                                << found.explanation;
      EXPECT_GE(found.ns, found.cut_ns);
      EXPECT_GE(found.class_ns, found.cut_ns * (1 - 1e-6));
      EXPECT_NE(found.plan.extension.verified, "") << "it is proved";
    }
  }
}

TEST(Synthesize, FindsTheSameAgain) {
  const SynthesisCall call{.collective = "allreduce", .bytes = 4 << 20};
  const Topology topology = load_topology("ring:4");
  const Synthesis one = synthesize(call, test::h200(), topology),
                  other = synthesize(call, test::h200(), topology);
  EXPECT_EQ(write(one.plan), write(other.plan));
  EXPECT_EQ(one.ns, other.ns);
}

TEST(Synthesize, IsNeverSlowerThanOtherPlans) {
  const std::vector<OtherPlan> others{{"packets", make_plan("allgather_packets", 4)},
                                      {"direct", make_plan("allgather_direct", 4)}};
  for (const uint64_t bytes : {1 << 10, 64 << 10, 1 << 20, 64 << 20}) {
    const Synthesis found = synthesize({.collective = "allgather", .bytes = bytes}, test::h200(),
                                       load_topology("switch:4"), others);
    for (const OtherPlan& other : others)
      EXPECT_LE(found.ns, simulate(other.plan, {.bytes = bytes}, test::h200()).ns)
          << bytes << ", " << other.name;
  }
}

// Other plans that need a route that is not there are left out.
TEST(Synthesize, LeavesOutPlansThatDoNotFit) {
  const Synthesis found = synthesize({.collective = "allgather", .bytes = 1 << 20}, test::h200(),
                                     load_topology("ring:4"), {{"direct", make_plan("allgather_direct", 4)}});
  EXPECT_NE(found.trials.back().refused.find("no route leads from gpu0 to gpu2"), std::string::npos)
      << found.trials.back().refused;
}

TEST(Synthesize, TakesAGroup) {
  const Synthesis found = synthesize({.collective = "allgather", .bytes = 3 << 18, .group = {5, 1, 3}},
                                     test::h200(), load_topology("switch:8"));
  EXPECT_EQ(found.plan.ranks(), 3u);
}

// Copy engines are faster than the stores of the plans that the search makes, but no plan beats the bound.
TEST(Synthesize, BoundsOtherPlansToo) {
  const Synthesis found =
      synthesize({.collective = "allgather", .bytes = 1 << 30}, test::h200(), load_topology("switch:4"),
                 {{"port", make_plan("allgather_by_port", 4)}});
  EXPECT_EQ(found.trials.front().name, "port");
  EXPECT_GE(found.ns, found.cut_ns);
}

TEST(Synthesize, EndsWhenItsTimeIsOver) {
  EXPECT_NE(message_of({.collective = "alltoall", .bytes = 1 << 20, .seconds = 1e-9}, "ring:4")
                .find("no plan for 'ring:4' was found in 1e-09 s: allow more time"),
            std::string::npos);
  const SynthesisCall call{.collective = "alltoall", .bytes = 1 << 30, .seconds = 0.5};
  const Synthesis found = synthesize(call, test::h200(), load_topology("switch:8"),
                                     {{"direct", make_plan("alltoall_direct", 8)}});
  EXPECT_GT(found.ns, 0) << "it returns the best so far";
}

TEST(Synthesize, Refusals) {
  EXPECT_EQ(
      message_of({.collective = "scan", .bytes = 1 << 20}, "ring:4"),
      "'scan' cannot be synthesised: choose one of allreduce, allgather, reducescatter, alltoall, broadcast, "
      "reduce");
  EXPECT_EQ(message_of({.collective = "broadcast", .bytes = 1 << 20, .root = 4}, "ring:4"),
            "the root is rank 4, but there are 4 ranks");
  EXPECT_EQ(message_of({.collective = "allgather", .bytes = 1 << 20, .group = {3}}, "ring:4"),
            "a group has at least two GPUs");
  EXPECT_NE(message_of({.collective = "allgather", .bytes = 1 << 20, .group = {5, 1, 3}}, "switch:8")
                .find("1048576 bytes are no multiple of 3 parts of f32 elements"),
            std::string::npos);
}

}  // namespace
}  // namespace chorale
