/// \file
/// Checks that a deadlock is found, without waiting for a deadline, if all ranks are threads of one process.

#include <gtest/gtest.h>

#include "tests/faults/caller.hpp"

namespace chorale::test {
namespace {

TEST(Deadlocks, are_reported_at_once_with_both_waits) {
  const Plan plan = both_wait_first(ChannelType::memory);
  for (const bool seeded : {false, true}) {
    std::string text[2];
    LocalOptions options{.timeout = far};
    if (seeded) options.seed = 1;
    EXPECT_THROW(run_local(
                     2,
                     [&](World& world) {
                       Executor executor(world);
                       float in = 1, out = 0;
                       try {
                         executor.execute(plan, {.in = &in, .out = &out, .bytes = 4});
                       } catch (const RunError& error) {
                         EXPECT_EQ(error.reason, RunError::Reason::deadlock);
                         text[world.rank()] = error.what();
                         throw;
                       }
                     },
                     options),
                 RunError);
    for (const std::string& one : text) {
      for (const int rank : {0, 1}) {
        const std::string wanted = "rank " + std::to_string(rank) +
                                   " block 0 op 0 (mine.cpp:11) wait on memory channel 0 from rank " +
                                   std::to_string(1 - rank) + ": expected 1, seen 0";
        EXPECT_NE(one.find(wanted), std::string::npos) << one;
      }
    }
  }
}

}  // namespace
}  // namespace chorale::test
