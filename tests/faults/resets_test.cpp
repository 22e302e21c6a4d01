/// \file
/// Checks that World::reset() clears a stop, for everything that belongs to the world and for nothing else.

#include "caller.hpp"

namespace chorale::test {
namespace {

using Reason = RunError::Reason;

class Resets : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Resets, both_ways, way_name);

TEST_P(Resets, can_be_made_again_and_again) {
  expect_good({.body = [](Rank& me) {
    Caller caller(me);
    for (int round = 0; round < 10; ++round) {
      for (const Plan* plan : {&by_signals(me), &by_packets(me)}) caller.run_well(*plan, round);
      me.world.barrier();
      if (me.rank() == round % me.ranks()) {
        me.world.abort("round " + std::to_string(round));
      } else {
        must(caller.failure(by_signals(me)).reason == Reason::aborted, "the world has stopped");
      }
      me.world.reset();
    }
  }});
}

TEST_P(Resets, reach_all_executors_of_a_world) {
  expect_good({.body = [](Rank& me) {
    Caller one(me), other(me);
    one.run_well(by_signals(me), 1);
    other.run_well(by_signals(me), 2);
    other.run_well(by_packets(me), 3);
    me.world.barrier();
    if (me.last()) {
      me.world.abort("enough");
    } else {
      must(one.failure(by_signals(me)).reason == Reason::aborted, "the first executor's run is aborted");
    }
    must(other.failure(by_packets(me)).reason == Reason::aborted, "so is the second's");
    me.world.reset();
    for (int run = 4; run < 8; ++run) {
      one.run_well(by_signals(me), run);
      other.run_well(run % 2 ? by_signals(me) : by_packets(me), run);
    }
    Caller third(me);
    third.run_well(in_two_steps(me), 8);
  }});
}

TEST_P(Resets, and_stops_leave_other_communicators_alone) {
  expect_good({.body = [](Rank& me) {
    Caller stopped(me), other(me, me.second);
    stopped.run_well(by_signals(me), 1);
    other.run_well(by_signals(me), 2);
    me.world.barrier();
    if (me.last()) me.world.abort("enough");
    must(stopped.hear_of_stop(me).reason == Reason::aborted, "this one has stopped");
    for (int run = 3; run < 10; ++run) other.run_well(run % 2 ? by_signals(me) : by_packets(me), run);
    must(stopped.failure(by_signals(me)).reason == Reason::aborted, "it still has");
    me.world.reset();
    stopped.run_well(by_signals(me), 10);
    other.run_well(by_signals(me), 11);
  }});
}

}  // namespace
}  // namespace chorale::test
