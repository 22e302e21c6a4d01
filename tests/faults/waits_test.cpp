/// \file
/// Checks that every wait for something that does not come, or comes late, ends and says where it was.

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>

#include "caller.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using Reason = RunError::Reason;

class Waits : public Faults {};
class WaitsOfProcesses : public FaultsOfProcesses {};
INSTANTIATE_TEST_SUITE_P(Ranks, Waits, both_ways, way_name);

constexpr const char* place = " block [0-9]+ op [0-9]+ \\([a-z_]+\\.cpp:[0-9]+\\) [a-z_]+";  // author's line

/// Returns whether the ranks whose waits began first ended them within a second of the deadline. Collective.
/// None of them may end before the deadline; the first one notifies the others.
bool ended_in_time(Rank& me, const Failure& seen, std::chrono::duration<double> deadline) {
  double longest = 0;
  for (const std::vector<std::byte>& bytes : me.world.allgather(std::as_bytes(std::span(&seen.after_s, 1)))) {
    double after = 0;
    std::memcpy(&after, bytes.data(), sizeof after);
    longest = std::max(longest, after);
  }
  constexpr double clocks_differ = 0.01;
  must(longest >= deadline.count() - clocks_differ,
       "a wait lasts until its deadline, not " + std::to_string(longest) + " s");
  return longest <= deadline.count() + 1;
}

void the_last_rank_does_not_come(Rank& me, const Plan& plan, const std::string& waits_for) {
  Caller caller(me);
  caller.run_well(plan, 1);
  bool in_time = false;
  // A busy machine may be late, but not every time.
  for (int attempt = 0; attempt < 3 && !in_time; ++attempt) {
    me.world.barrier();
    const Failure seen = me.last() ? caller.hear_of_stop(me) : caller.failure(plan);
    must(seen.reason == Reason::timed_out, "the reason is timed_out: " + seen.text);
    // Each rank that waits reports where. The rank that did not come receives this from one of them.
    must_match(seen.text, "rank " + (me.last() ? "[0-9]+" : std::to_string(me.rank())) + place + waits_for);
    // Nothing runs before a reset.
    must(caller.failure(plan).reason == Reason::timed_out, "a further call fails");
    me.world.reset();
    in_time = ended_in_time(me, seen, soon);
    if (!in_time) caller.run_well(plan, 1);
  }
  must(in_time, "a wait ends within a second of its deadline");
  for (int run = 2; run < 5; ++run) caller.run_well(plan, run);
}

TEST_P(Waits, a_rank_that_never_comes_is_named_with_the_signal) {
  expect_good({.body =
                   [](Rank& me) {
                     const std::string last = std::to_string(me.ranks() - 1);
                     the_last_rank_does_not_come(
                         me, by_signals(me),
                         " on memory channel [0-9]+ from rank " + last + ": expected [0-9]+, seen [0-9]+");
                   },
               .deadline = soon});
}

TEST_P(Waits, a_rank_that_never_comes_is_missed_by_packets) {
  expect_good(
      {.body = [](Rank& me) { the_last_rank_does_not_come(me, by_packets(me), ".* waits for packets"); },
       .deadline = soon});
}

TEST_P(Waits, a_rank_that_comes_late_but_in_time_changes_nothing) {
  expect_good({.body = [](Rank& me) {
    Caller caller(me);
    for (const Plan* plan : {&by_signals(me), &by_packets(me), &in_two_steps(me)}) {
      for (int run = 0; run < 3; ++run) {
        if (run == 1 && me.last()) std::this_thread::sleep_for(150ms);
        caller.run_well(*plan, run);
      }
    }
  }});
}

/// Checks the messages of both ranks of both_wait_first(). On the CPU, where all ranks are visible, it is a
/// deadlock.
void wait_for_each_other(Rank& me) {
  for (const ChannelType type : {ChannelType::memory, ChannelType::port}) {
    const Plan plan = both_wait_first(type);
    Caller caller(me);
    const Failure seen = caller.failure(plan);
    must(seen.reason == Reason::timed_out || seen.reason == Reason::deadlock,
         "it is a time-out or a deadlock: " + seen.text);
    must_have(seen.text, "rank " + std::to_string(me.rank()) + " block 0 op 0 (mine.cpp:11) wait on " +
                             (type == ChannelType::memory ? "memory" : "port") + " channel 0 from rank " +
                             std::to_string(1 - me.rank()) + ": expected 1, seen 0");
    must(seen.text.find("no unfinished block") == std::string::npos, "neither is missing: " + seen.text);
    me.world.reset();
    caller.run_well(by_signals(me), 1);
  }
}

TEST_P(Waits, for_each_other_are_named_on_both_sides) {
  expect_good({.body = wait_for_each_other, .ranks = 2, .deadline = soon});
}

TEST_F(WaitsOfProcesses, the_first_of_different_deadlines_ends_all) {
  expect_good({.body = wait_for_each_other, .ranks = 2, .deadline = far, .deadline_of_rank_0 = soon});
}

}  // namespace
}  // namespace chorale::test
