/// \file
/// Checks that World::abort() ends every wait of every rank, whatever the deadline.

#include <thread>

#include "caller.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using Reason = RunError::Reason;

class Aborts : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Aborts, both_ways, way_name);

void must_be_aborted(const Failure& seen, int by) {
  must(seen.reason == Reason::aborted, "the reason is aborted: " + seen.text);
  must_have(seen.text, "aborted by rank " + std::to_string(by) + ": enough");
}

TEST_P(Aborts, from_another_thread_end_waits_without_a_deadline) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     const Plan& plan = by_signals(me);
                     caller.run_well(plan, 1);
                     me.world.barrier();
                     if (me.last()) {
                       must_be_aborted(caller.hear_of_stop(me), 0);
                     } else {
                       std::jthread other;
                       if (me.rank() == 0) {
                         other = std::jthread([&] {
                           std::this_thread::sleep_for(1s);
                           me.world.abort("enough");
                         });
                       }
                       const Failure seen = caller.failure(plan);
                       must_be_aborted(seen, 0);
                       must_match(seen.text, "rank " + std::to_string(me.rank()) +
                                                 " block [0-9]+ op [0-9]+ \\(allreduce_all_pairs.cpp:[0-9]+");
                     }
                     me.world.reset();
                     caller.run_well(plan, 2);
                   },
               .deadline = 0ms});
}

TEST_P(Aborts, of_a_rank_outside_end_the_waits_of_the_others) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     caller.run_well(by_packets(me), 1);
                     me.world.barrier();
                     if (me.last()) {
                       std::this_thread::sleep_for(1s);
                       me.world.abort("enough");
                       me.world.abort("the first counts");
                       must_be_aborted(caller.hear_of_stop(me), me.rank());
                     } else {
                       must_be_aborted(caller.failure(by_packets(me)), me.ranks() - 1);
                     }
                     me.world.reset();
                     caller.run_well(by_packets(me), 2);
                   },
               .deadline = 0ms});
}

TEST_P(Aborts, stop_calls_that_come_later) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     caller.run_well(by_signals(me), 1);
                     me.world.barrier();
                     if (me.rank() == 0) me.world.abort("enough");
                     must_be_aborted(caller.hear_of_stop(me), 0);
                     must_be_aborted(caller.failure(by_signals(me)), 0);
                     must_be_aborted(caller.failure(by_packets(me)), 0);  // this call is not bound yet
                     must_be_aborted(failure_of([&] { me.world.barrier(); }), 0);
                   },
               .deadline = 0ms});
}

}  // namespace
}  // namespace chorale::test
