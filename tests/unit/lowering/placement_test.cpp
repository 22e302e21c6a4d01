/// \file
/// These tests check what is copied before a run on buffers that peers cannot reach.

#include "executor/lowering/placement.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chorale/layout.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {
namespace {

using namespace lowering;

/// Returns whether the output is copied to the staging memory before a run, so that what the plan does not
/// write comes back as it was.
bool keeps_output(const Plan& plan) {
  const Layout layout = layout_of(plan, 64, DType::i32);
  const auto bytes = size_t(layout.sizes.input + layout.sizes.output);
  std::vector<char> in(bytes), out(bytes), staging(2 * bytes);
  const Placed placed = Placement(plan, 0, layout)
                            .place(in.data(), out.data(),
                                   {[] { return nullptr; }, [&] { return staging.data(); },
                                    [](const char*, uint64_t) { return false; }});
  EXPECT_TRUE(placed.staged);
  EXPECT_EQ(placed.after.to, out.data());
  EXPECT_TRUE(!placed.before[1].needed() || placed.before[1].from == out.data());
  return placed.before[1].needed();
}

TEST(Placement, KeepsWhatThePlanMayLeaveAsItWas) {
  const auto keeps = [](const char* collective) {
    Plan plan = two_ranks();
    plan.collective = collective;
    return keeps_output(plan);
  };
  EXPECT_FALSE(keeps("allreduce"));
  EXPECT_FALSE(keeps("broadcast"));
  for (const char* const may : {"sendrecv", "custom", "test", "mine"}) EXPECT_TRUE(keeps(may)) << may;
  Plan own = two_ranks();
  own.collective = "allreduce";
  own.extension.post = {{{}}, {{{0, 0}}}};  // it promises nothing of rank 0's output
  EXPECT_TRUE(keeps_output(own));
}

}  // namespace
}  // namespace chorale
