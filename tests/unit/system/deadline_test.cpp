#include "executor/system/deadline.hpp"

#include <gtest/gtest.h>

#include "chorale/world.hpp"
#include "executor/fibers/scheduler.hpp"

namespace chorale::system {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(DeadlineAfter, IsNeverBeforeItsStart) {
  const Clock::time_point now = Clock::now(), never = Clock::time_point::max();
  EXPECT_EQ(deadline_after(2s, now), now + 2s);
  EXPECT_EQ(deadline_after(1ns, now), now + 1ns);
  EXPECT_EQ(deadline_after(0ns, now), never) << "no limit";
  EXPECT_EQ(deadline_after(std::chrono::nanoseconds::max(), now), never);
  EXPECT_EQ(deadline_after(never - now, now), never);
  EXPECT_EQ(deadline_after(never - now + 1ns, now), never);
  EXPECT_EQ(deadline_after(never - now - 1ns, now), never - 1ns);
}

/// The waiting block checks its deadline again and again.
TEST(DeadlineAfter, TheLongestTimeoutLastsThroughALaunch) {
  run_local(2,
            [](World& world) {
              const auto wait = [&](int, fibers::BlockHost& host) {
                for (int looks = 0; looks < 5000; ++looks)
                  host.park([](const void*) { return true; }, nullptr);
              };
              EXPECT_EQ(world.scheduler().launch(world.rank(), 2, wait).stop, Stop::none);
            },
            {.seed = 1, .timeout = std::chrono::nanoseconds::max()});
}

}  // namespace
}  // namespace chorale::system
