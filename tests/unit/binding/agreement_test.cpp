/// \file
/// Checks that all ranks are notified of what one rank cannot do.

#include "executor/binding/agreement.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <string>
#include <vector>

#include "chorale/world.hpp"
#include "tests/unit/thrown.hpp"

namespace chorale {
namespace {

using Step = std::function<void()>;
const Step works = [] {};
const Step takes_no_such_size = [] { throw UsageError("no such size"); };
const Step fails_in_the_driver = [] { throw RunError(RunError::Reason::other, "the driver says no"); };
const Step runs_out_of_memory = [] { throw std::bad_alloc(); };
const Step throws_a_number = [] { throw 7; };

/// Returns the error of each rank.
std::vector<std::string> said(const std::vector<Step>& steps) {
  std::vector<std::string> all(steps.size());
  run_local(int(steps.size()),
            [&](World& world) {
              const size_t rank = size_t(world.rank());
              all[rank] = test::thrown([&] { agree_on_use(world, steps[rank]); });
              world.barrier();  // the world has not stopped
            },
            {.timeout = std::chrono::hours(1)});
  return all;
}

using Texts = std::vector<std::string>;

TEST(Agreement, OnUseIsSilentWhereAllCan) { EXPECT_EQ(said({works, works, works}), Texts(3, "nothing")); }

TEST(Agreement, OnUseTellsAllWhatOneThrew) {
  EXPECT_EQ(said({works, fails_in_the_driver, works}), Texts(3, "other: rank 1: the driver says no"));
  EXPECT_EQ(said({works, works, runs_out_of_memory}), Texts(3, "resources: rank 2: out of memory"));
  EXPECT_EQ(said({throws_a_number, works}),
            Texts(2, "other: rank 0: an exception that is no std::exception"));
  EXPECT_EQ(said({works, takes_no_such_size}), Texts({"usage: rank 1: no such size", "usage: no such size"}));
}

TEST(Agreement, OnUseTellsWhatTheLowestRankThrew) {
  EXPECT_EQ(said({works, runs_out_of_memory, fails_in_the_driver}),
            Texts(3, "resources: rank 1: out of memory"));
  EXPECT_EQ(said({fails_in_the_driver, takes_no_such_size, works}),
            Texts({"other: rank 0: the driver says no", "usage: no such size",
                   "other: rank 0: the driver says no"}));
}

/// Returns rank 0's error when the ranks bind these calls.
std::string disagree(const Call& one, const Call& other) {
  std::string first;
  run_local(2, [&](World& world) {
    LaunchCount launches(world);
    const std::string text =
        test::thrown([&] { agree_on_binding(world, Plan(), world.rank() == 0 ? one : other, launches, {}); });
    if (world.rank() == 0) first = text;
  });
  return first;
}

/// The numbers come from another version of this library, which knows more.
TEST(Agreement, OnABindingNamesNumbersThatItDoesNotKnow) {
  EXPECT_EQ(disagree({}, {.packet = PacketForm(20)}),
            "mismatch: ranks 0 and 1 disagree on packet: ll8 and 20");
  EXPECT_EQ(disagree({.packet = PacketForm(200)}, {}),
            "mismatch: ranks 0 and 1 disagree on packet: 200 and ll8");
  EXPECT_EQ(disagree({}, {.dtype = DType(99)}), "mismatch: ranks 0 and 1 disagree on dtype: f32 and 99");
  EXPECT_EQ(disagree({}, {.op = 99}), "mismatch: ranks 0 and 1 disagree on op: the plan's and 99");
}

/// If their limits differed, ranks would later evict different bindings.
TEST(Agreement, OnABindingIsOnOneLimitOfBindings) {
  EXPECT_EQ(disagree({.bindings = 3}, {.bindings = 17}),
            "mismatch: ranks 0 and 1 disagree on bindings: 3 and 17");
  EXPECT_EQ(disagree({.round_scratch = 4096}, {.round_scratch = 0}),
            "mismatch: ranks 0 and 1 disagree on round_scratch: 4K and 0");
  EXPECT_EQ(disagree({.scratch = 1 << 20}, {.scratch = 1000}),
            "mismatch: ranks 0 and 1 disagree on scratch: 1M and 1000");
}

}  // namespace
}  // namespace chorale
