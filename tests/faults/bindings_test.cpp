/// \file
/// Tests more calls than an executor keeps bindings for.

#include "caller.hpp"

namespace chorale::test {
namespace {

class FewBindings : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, FewBindings, both_ways, way_name);

TEST_P(FewBindings, are_made_anew_and_exact) {
  expect_good({.body = [](Rank& me) {
    for (const unsigned kept : {1u, 2u}) {
      me.config.bindings = kept;
      Caller caller(me);
      int run = 0;
      for (int round = 0; round < 3; ++round) {
        for (const Plan* plan : {&by_signals(me), &by_packets(me), &in_two_steps(me), &by_packets(me)})
          caller.run_well(*plan, ++run);
      }
    }
  }});
}

TEST_P(FewBindings, leave_a_world_that_can_be_reset) {
  expect_good({.body = [](Rank& me) {
    me.config.bindings = 1;
    Caller caller(me);
    caller.run_well(by_signals(me), 1);
    caller.run_well(by_packets(me), 2);
    me.world.barrier();
    if (me.last()) me.world.abort("a test");
    caller.hear_of_stop(me);
    me.world.reset();
    caller.run_well(by_signals(me), 3);
    caller.run_well(by_packets(me), 4);
  }});
}

}  // namespace
}  // namespace chorale::test
