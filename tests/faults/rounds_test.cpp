/// \file
/// Tests messages in rounds, and more of them than their scratch can hold, with ranks as threads and as
/// processes.

#include "caller.hpp"

namespace chorale::test {
namespace {

class Rounds : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Rounds, both_ways, way_name);

TEST_P(Rounds, are_exact_launch_after_launch) {
  expect_good({.body = [](Rank& me) {
    me.config.round_scratch = 512;
    Caller caller(me);
    int run = 0;
    for (int turn = 0; turn < 3; ++turn) {
      for (const Plan* plan : {&by_packets(me), &in_two_steps(me), &built("allreduce_ring", me.ranks())})
        caller.run_well(*plan, ++run);
    }
  }});
}

TEST_P(Rounds, and_calls_that_go_for_want_of_scratch_are_exact) {
  expect_good({.body = [](Rank& me) {
    me.config.round_scratch = 4096;
    {
      Caller caller(me);
      caller.run_well(in_two_steps(me), 1);
      me.config.scratch = caller.executor.scratch();  // enough for one call
    }
    Caller caller(me);
    for (int run = 0; run < 6; ++run) {
      caller.run_well(run % 2 ? in_two_steps(me) : by_signals(me), run);
      must(caller.executor.scratch() <= me.config.scratch, "scratch stays within its limit");
    }
  }});
}

TEST_P(Rounds, are_refused_alike_where_one_call_takes_too_much_scratch) {
  expect_good({.body = [](Rank& me) {
    me.config.scratch = 1000;
    Caller caller(me);
    const Failure seen = caller.failure(in_two_steps(me));
    must(seen.reason == RunError::Reason::resources && !seen.usage, seen.text);
    must(seen.text.find("help: set CHORALE_SCRATCH to ") != seen.text.npos, seen.text);
    me.world.barrier();  // the world has not stopped
  }});
}

}  // namespace
}  // namespace chorale::test
