/// \file
/// Checks that ranks that do not make the same call all get an error, with no wrong result and no hang.

#include <utility>

#include "caller.hpp"
#include "chorale/schedule/schedule.hpp"

namespace chorale::test {
namespace {

using Reason = RunError::Reason;

class Mismatches : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Mismatches, both_ways, way_name);

/// Makes the last rank change the others' call by `change`. No rank has made that call before.
void differ(Rank& me, Caller& caller, Arguments arguments, const std::string& what,
            const std::function<void(Arguments&, const Plan*&)>& change) {
  const Plan* plan = &by_signals(me);
  if (me.last()) change(arguments, plan);
  const Failure seen = caller.failure(*plan, arguments);
  must(seen.reason == Reason::mismatch, "the reason is mismatch: " + seen.text);
  must_have(seen.text, "ranks 0 and " + std::to_string(me.ranks() - 1) + " disagree on " + what);
}

TEST_P(Mismatches, of_first_calls_are_told_to_all) {
  expect_good({.body = [](Rank& me) {
    Caller caller(me);
    const auto all_differ = [&] {
      Arguments call = caller.data.arguments();
      call.bytes /= 2;
      differ(me, caller, call, "bytes: 2000 and 1936", [](Arguments& of, const Plan*&) { of.bytes -= 64; });
      differ(me, caller, call, "dtype: f32 and i32",
             [](Arguments& of, const Plan*&) { of.dtype = DType::i32; });
      differ(me, caller, call, "op: the plan's and max",
             [](Arguments& of, const Plan*&) { of.op = ReduceOp::max; });
      differ(me, caller, call, "packet: ll16 and ll8",
             [](Arguments& of, const Plan*&) { of.packet = PacketForm::ll8; });
      differ(me, caller, call, "the plan: 'allreduce_all_pairs'",
             [&](Arguments&, const Plan*& plan) { plan = &by_packets(me); });
    };
    all_differ();
    // No world has stopped. A call that the ranks agree on runs, and is not disturbed later.
    caller.run_well(by_signals(me), 1);
    all_differ();
    caller.run_well(by_signals(me), 2);
  }});
}

void must_have_ended(const Failure& seen) {
  must(seen.reason == Reason::timed_out || seen.reason == Reason::deadlock || seen.reason == Reason::aborted,
       "it is a time-out or a deadlock: " + seen.text);
}

/// Checks that everything works again after a reset.
void must_run_again(Rank& me, Caller& caller) {
  me.world.reset();
  caller.run_well(by_signals(me), 3);
  caller.run_well(by_packets(me), 4);
}

TEST_P(Mismatches, of_calls_that_were_made_before_end_on_all) {
  expect_good({.body =
                   [](Rank& me) {
                     using Change = void (*)(Arguments&);
                     const Change bytes = [](Arguments& of) { of.bytes /= 2; };
                     const Change dtype = [](Arguments& of) { of.dtype = DType::i32; };
                     const Change op = [](Arguments& of) { of.op = ReduceOp::max; };
                     const std::pair<const Plan*, Change> others[] = {{&by_signals(me), bytes},
                                                                      {&in_two_steps(me), bytes},
                                                                      {&by_signals(me), dtype},
                                                                      {&by_signals(me), op}};
                     for (const auto& [other, change] : others) {
                       Caller caller(me);
                       Arguments arguments = caller.data.arguments();
                       caller.run_well(by_signals(me), 1);
                       change(arguments);
                       caller.run(*other, arguments);
                       me.world.barrier();
                       const Plan& mine = me.last() ? *other : by_signals(me);
                       const Failure seen =
                           me.last() ? caller.failure(mine, arguments) : caller.failure(mine);
                       must_have_ended(seen);
                       must_match(seen.text,
                                  "ranks [0-9] and [0-9] have launched different calls, each its call 3 of");
                       must_match(seen.text, "rank " + std::to_string(me.rank()) +
                                                 " block [0-9]+ op [0-9]+ \\(" + mine.name + ".cpp:");
                       must_run_again(me, caller);
                     }
                   },
               .deadline = soon});
}

TEST_P(Mismatches, of_a_first_call_and_one_made_before_are_told_to_all) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     caller.run_well(by_signals(me), 1);
                     me.world.barrier();
                     const Failure seen = caller.failure(me.last() ? in_two_steps(me) : by_signals(me));
                     must(seen.reason == Reason::deadlock, "the reason is deadlock: " + seen.text);
                     must_match(seen.text,
                                "rank [0-9] has launched call 2 of this executor, which it had bound before, "
                                "but rank " +
                                    std::to_string(me.ranks() - 1) + " has to bind it first");
                     must_run_again(me, caller);
                   },
               .deadline = far});
}

/// Holds a plan that no rank can run, and the message about it.
struct Impossible {
  Plan plan;
  std::string text;
};

std::vector<Impossible> impossible(Rank& me) {
  Impossible for_others{built("allreduce_all_pairs", 8),
                        "is for 8 ranks, but the world has " + std::to_string(me.ranks())};
  Impossible schedule;
  schedule.plan.extension.schedule = std::make_shared<schedule::Schedule>();
  schedule.text = "is a host schedule";
  Impossible unproved{by_signals(me), "has no certificate that holds"};
  unproved.plan.extension.verified = "{}";
  std::vector<Impossible> all;
  for (Impossible* const one : {&for_others, &schedule, &unproved}) all.push_back(std::move(*one));
  return all;
}

TEST_P(Mismatches, of_plans_that_one_rank_cannot_run_are_told_to_all) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     const std::vector<Impossible> all = impossible(me);
                     for (const int who : {me.ranks() - 1, 0}) {
                       for (const Impossible& one : all) {
                         const bool mine = me.rank() == who;
                         Arguments call = caller.data.arguments();
                         call.bytes /= 2;
                         const Failure seen = caller.failure(mine ? one.plan : by_signals(me), call);
                         must(seen.usage, "it is a wrong call: " + seen.text);
                         must_have(seen.text, one.text);
                         must(mine || seen.text.starts_with("rank " + std::to_string(who) + ": plan "),
                              "the rank is named: " + seen.text);
                       }
                     }
                     // All ranks make the call, and each reports its own error.
                     for (const Impossible& one : all)
                       must(caller.failure(one.plan).text.starts_with("plan "), "no rank is named");
                     // No world has stopped.
                     caller.run_well(by_signals(me), 1);
                   },
               .deadline = far});
}

TEST_P(Mismatches, of_a_plan_that_cannot_run_and_a_call_made_before_are_told_to_all) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     caller.run_well(by_signals(me), 1);
                     me.world.barrier();
                     const Impossible wrong = impossible(me).front();
                     const Failure seen = caller.failure(me.last() ? wrong.plan : by_signals(me));
                     must(seen.reason == Reason::deadlock, "the reason is deadlock: " + seen.text);
                     must_match(seen.text,
                                "rank [0-9] has launched call 2 of this executor.* and it cannot: plan "
                                "'allreduce_all_pairs' " +
                                    wrong.text);
                     must_run_again(me, caller);
                   },
               .deadline = far});
}

TEST_P(Mismatches, with_what_a_plan_takes_say_what_is_right) {
  expect_good(
      {.body =
           [](Rank& me) {
             Caller caller(me);
             float* const at = const_cast<float*>(static_cast<const float*>(caller.data.arguments().in));
             const auto says = [&](const Plan& of, const Arguments& arguments, const std::string& text) {
               const Failure seen = caller.failure(of, arguments);
               must(seen.usage, "it is a wrong call: " + seen.text);
               must_have(seen.text, text);
             };
             const Plan& plan = built("allreduce_ring", 2);
             says(plan, {.in = at, .out = at + 64, .bytes = 10}, "the nearest sizes are 8 and 12");
             says(built("reducescatter_direct", 2), {.in = at, .out = at + 64, .bytes = 12},
                  "the nearest sizes are 8 and 16");
             says(plan, {.in = at, .out = at + 8, .bytes = 64}, "overlap");
             says(plan, {.in = nullptr, .out = at + 8, .bytes = 64}, "in is null");
             says(built("allgather_direct", 2), {.in = at, .out = at + 64, .bytes = 64, .op = ReduceOp::avg},
                  "avg is for collectives that reduce, and allgather does not");
             Plan small = plan;
             small.max_message_size = 32;
             says(small, {.in = at, .out = at + 64, .bytes = 64}, "takes messages of 0 to 32 bytes, not 64");
             caller.run(plan, {.in = nullptr, .out = nullptr, .bytes = 0});
             caller.run_well(plan, 1);
           },
       .ranks = 2});
}

/// While a rank binds, it checks whether another rank has launched the same call.
TEST_P(Mismatches, a_wrong_call_is_no_launch) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     const Plan &known = built("allreduce_one_shot", 2),
                                &fresh = built("allgather_direct", 2);
                     caller.run_well(known, 1);
                     float* const at =
                         const_cast<float*>(static_cast<const float*>(caller.data.arguments().in));
                     Arguments wrong = caller.data.arguments();
                     wrong.out = at + 1;
                     if (me.last()) {
                       for (int call = 0; call < 5000; ++call) {
                         const Failure seen = failure_of([&] { caller.run(known, wrong); });
                         must(seen.usage, "it is a wrong call: " + seen.text);
                       }
                     }
                     caller.run(fresh, {.in = at, .out = at + 64, .bytes = 128});
                   },
               .ranks = 2});
}

}  // namespace
}  // namespace chorale::test
