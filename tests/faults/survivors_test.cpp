/// \file
/// Checks that the remaining ranks continue in a smaller world, with new executors and with plans for their
/// number. The objects of the old world still exist, or have been destroyed.

#include <optional>
#include <utility>

#include "caller.hpp"

namespace chorale::test {
namespace {

using Reason = RunError::Reason;

class Survivors : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Survivors, both_ways, way_name);

Rank next_of(Rank& me) {
  World world = me.world.survivors();
  must(world.former_ranks().at(size_t(world.rank())) == me.rank(), "a rank finds its new number");
  return {std::move(world), std::move(me.second), me.config, me.fresh};
}

void runs_well(Rank& me, Caller& caller) {
  for (int run = 0; run < 3; ++run) {
    for (const Plan* plan : {&by_signals(me), &by_packets(me), &in_two_steps(me)})
      caller.run_well(*plan, run);
  }
}

/// Makes one rank after the other leave, until two are left.
void go_on(Rank& me, std::optional<Caller> old) {
  Caller caller(me);
  runs_well(me, caller);
  old.reset();  // it belongs to the world before, and is destroyed after objects of this world were made
  if (me.ranks() <= 2) return me.world.barrier();
  me.world.barrier();
  if (me.rank() == 0) return;
  must(caller.failure(by_signals(me)).reason != Reason::aborted, "nobody comes without rank 0");
  Rank next = next_of(me);
  must(next.rank() == me.rank() - 1 && next.ranks() == me.ranks() - 1, "all but rank 0 are left");
  go_on(next, std::move(caller));
}

TEST_P(Survivors, of_one_that_leaves_and_another) {
  expect_good({.body = [](Rank& me) { go_on(me, std::nullopt); }, .deadline = soon});
}

/// The old executor is destroyed before the new one is made.
TEST_P(Survivors, of_an_abort_are_all) {
  expect_good({.body = [](Rank& me) {
    std::optional<Caller> caller(me);
    runs_well(me, *caller);
    for (int round = 0; round < 3; ++round) {
      me.world.barrier();
      if (me.last()) {
        me.world.abort("enough");
      } else {
        must(caller->failure(by_signals(me)).reason == Reason::aborted, "the world has stopped");
      }
      caller.reset();
      me.world = me.world.survivors();
      must(me.world.former_ranks().size() == size_t(me.ranks()), "all are left");
      caller.emplace(me);
      runs_well(me, *caller);
    }
  }});
}

}  // namespace
}  // namespace chorale::test
