/// \file
/// Tests the death of a rank's process.

#include <signal.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "caller.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using Reason = RunError::Reason;

/// Ranks check for dead peers all the time. Only a rank that does not check takes this long.
constexpr double unnoticed_s = 10;

class Deaths : public FaultsOfProcesses {};

/// Checks a survivor: `seen` says which rank died, the world cannot be reset, and everything local to the
/// rank still works.
void survive(Rank& me, Caller& caller, const Failure& seen) {
  must(seen.reason == Reason::peer_lost, "the reason is peer_lost: " + seen.text);
  must_have(seen.text, "rank 1 (pid ");
  must(failure_of([&] { me.world.reset(); }).reason == Reason::peer_lost, "there is no reset without rank 1");

  std::vector<float> sent(Data::elements, 3), back(Data::elements);
  const std::shared_ptr<void> memory = device().allocate(Data::bytes);
  device().copy(memory.get(), sent.data(), Data::bytes, caller.data.stream());
  device().copy(back.data(), memory.get(), Data::bytes, caller.data.stream());
  device().wait(caller.data.stream());
  must(back == sent, "the device is as good as before");
  // The survivors continue without it.
  World fewer = me.world.survivors();
  must(fewer.rank() == me.rank() - (me.rank() > 1) && fewer.ranks() == me.ranks() - 1, "rank 1 has gone");
  Rank survivor{std::move(fewer), std::move(me.second), me.config, me.fresh};
  Caller again(survivor);
  for (int run = 0; run < 3; ++run) again.run_well(by_signals(survivor), run);
}

TEST_F(Deaths, while_the_others_wait_for_it) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     caller.run_well(by_signals(me), 1);
                     me.world.barrier();
                     if (me.rank() == 1) {
                       std::this_thread::sleep_for(1s);
                       kill(getpid(), SIGKILL);
                     }
                     const Failure seen = caller.failure(by_signals(me));
                     must(seen.after_s < 1 + unnoticed_s,
                          "the death is noticed, not after " + std::to_string(seen.after_s) + " s");
                     must_match(seen.text, "rank " + std::to_string(me.rank()) + " block [0-9]+ op [0-9]+");
                     survive(me, caller, seen);
                   },
               .deadline = 0ms,
               .killed = 1});
}

TEST_F(Deaths, in_the_middle_of_a_collective) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     const Plan& plan = in_two_steps(me);
                     caller.run_well(plan, 1);
                     me.world.barrier();
                     std::jthread killer;
                     if (me.rank() == 1) {
                       killer = std::jthread([] {
                         std::this_thread::sleep_for(100ms);
                         kill(getpid(), SIGKILL);
                       });
                     }
                     const Failure seen = failure_of([&] {
                       for (;;) caller.run(plan);
                     });
                     survive(me, caller, seen);
                   },
               .deadline = 0ms,
               .killed = 1});
}

}  // namespace
}  // namespace chorale::test
