// These tests check faults of host schedules: calls that do not fit, and peers that never come, die, or
// throw.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "chorale/executor.hpp"
#include "chorale/schedule.hpp"
#include "executor/fibers/sanitizers.hpp"
#include "tests/unit/scarce_memory.hpp"
#include "tests/unit/schedule/schedules.hpp"
#include "tests/unit/thrown.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale::test {
namespace {

constexpr LocalOptions hasty{.timeout = std::chrono::seconds(2)};
const Form rotated{Order::rotated, Style::two, 1};

ScheduleArguments arguments(int64_t n) {
  ScheduleArguments arguments{.params = {{"n", n}}};
  arguments.functions["produce"] = arguments.functions["consume"] = [](const HostCall&) {};
  return arguments;
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* const part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(ScheduleFaults, APeerThatNeverRunsIsNamedWithTheLine) {
  std::string said[3];
  run_local(
      3,
      [&](World& world) {
        ScheduleRun schedule(world, allgather_p2p(rotated), arguments(100));
        said[world.rank()] = thrown([&] {
          if (world.rank() != 2) schedule.run();
          // Rank 2 has no wait of its own and is notified.
          while (world.rank() == 2) {
            schedule.check();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        });
      },
      hasty);
  for (const std::string& one : said) expect_parts(one, {"timed_out: ", "waited 2 s"});
  // Rank 0 waits at i = 1 for rank 2, to which it sends. Rank 1 waits for a credit from rank 0.
  expect_parts(said[0], {"rank 0, stream comm, i = 1: take of 'credit of t1", "from rank 2 (ag.cpp:1"});
  expect_parts(said[1], {"rank 1, stream comm, i = 1: take of 'data of t1", "from rank 2 (ag.cpp:1"});
}

void expect_end_of_every_rank(const std::function<void()>& failing, const char* why) {
  std::string said[2];
  run_local(2, [&](World& world) {
    ScheduleArguments given = arguments(10);
    int calls = 0;
    given.functions["consume"] = [&](const HostCall& call) {
      if (call.rank == 1 && ++calls == 2) failing();
    };
    ScheduleRun schedule(world, allgather_p2p(rotated), given);
    said[world.rank()] = thrown([&] {
      for (int run = 0; run < 3; ++run) schedule.run();
      world.barrier();
    });
    // Nothing is left behind that would disturb a new binding.
    thrown([&] { schedule.synchronize(); });
    world.reset();
    expect_parts(thrown([&] { schedule.run(); }), {"usage: ", "bind it again"});
    ScheduleRun again(world, allgather_p2p(rotated), arguments(10));
    EXPECT_EQ(thrown([&] { again.run(); }), "nothing");
    EXPECT_EQ(thrown([&] { again.synchronize(); }), "nothing");
    world.barrier();
  });
  for (const std::string& one : said)
    expect_parts(one, {"aborted by rank 1", "stream main", "call 'consume'", why});
}

TEST(ScheduleFaults, WhatAFunctionThrowsEndsEveryRank) {
  expect_end_of_every_rank([] { throw std::runtime_error("the disk is full"); }, "the disk is full");
  expect_end_of_every_rank([] { throw 1; }, "an exception that is no std::exception");
}

/// The function would wait for itself.
TEST(ScheduleFaults, AFunctionCannotWaitForTheRunThatItIsIn) {
  const auto said_by = [](std::optional<uint64_t> seed, const std::function<void(ScheduleRun&)>& waits) {
    std::array<std::string, 2> said;
    LocalOptions options;
    options.seed = seed;
    run_local(
        2,
        [&](World& world) {
          std::optional<ScheduleRun> schedule;
          ScheduleArguments given = arguments(10);
          given.functions["consume"] = [&](const HostCall& call) {
            if (call.rank == 1) waits(*schedule);
          };
          schedule.emplace(world, allgather_p2p(rotated), given);
          said[size_t(world.rank())] = thrown([&] {
            schedule->run();
            world.barrier();
          });
        },
        options);
    return said;
  };
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>{}, std::optional<uint64_t>{1}}) {
    for (const std::string& one : said_by(seed, [](ScheduleRun& schedule) { schedule.synchronize(); }))
      expect_parts(one, {"aborted by rank 1", "call 'consume'",
                         "synchronize() is called by a function of the schedule"});
    for (const std::string& one : said_by(seed, [](ScheduleRun& schedule) { schedule.run(); }))
      expect_parts(one,
                   {"aborted by rank 1", "call 'consume'", "run() is called by a function of the schedule"});
  }
}

/// The checks treat them as different memory.
TEST(ScheduleFaults, InputsThatTheScheduleWritesMayNotShareMemory) {
  const auto bound = [](const std::string& body) {
    const Plan plan = plan_of(
        rotated, "{}",
        R"({"name":"x","dtype":"f32","shape":[4],"role":"in"},{"name":"w","dtype":"f32","shape":[4],"role":"in"},
           {"name":"y","dtype":"f32","shape":[4],"role":"out"})",
        body + R"({"op":"copy","dst":["y"],"src":["x"]})", "");
    std::string said;
    run_local(2, [&](World& world) {
      std::vector<float> room(4);
      const std::string mine = thrown([&] {
        ScheduleRun schedule(world, plan, {.buffers = {{"x", room.data()}, {"w", room.data()}}});
      });
      if (world.rank() == 0) said = mine;
    });
    return said;
  };
  EXPECT_EQ(bound(""), "nothing");
  const std::string shares =
      "usage: the buffers of 'x' and 'w' overlap: give each tensor memory of its own; only "
      "inputs that the schedule does not write may share it";
  EXPECT_EQ(bound(R"({"op":"fill","dst":["w"],"value":1},)"), shares);
  for (const std::string via : {"ce_put", "ce_get", "plan"}) {
    const std::string end = R"("peer":["-",1,"rank"],"via":")" + via + R"("})";
    EXPECT_EQ(bound(R"({"op":"group","token":1,"do":[{"op":"send","src":["x"],)" + end +
                    R"(,{"op":"recv","dst":["w"],)" + end + R"(]},{"op":"wait","token":1},)"),
              shares)
        << via;
  }
}

TEST(ScheduleFaults, APeerThatDiesIsNamed) {
  const std::string address = fresh_address();
  Processes all(2, [&](int rank) {
    World world = World::join(address, rank, 2, {.timeout = std::chrono::minutes(5)});
    ScheduleRun schedule(world, allgather_p2p(rotated), arguments(100));
    if (rank == 1) _exit(0);
    return thrown([&] { schedule.run(); });
  });
  expect_parts(all.said(0), {"peer_lost: rank 1", "died"});
  all.said(1);
}

/// A fork has none of the threads that run the streams.
TEST(ScheduleFaults, AForkMayAssignToWhatItWasGiven) {
  const std::string address = fresh_address();
  Processes all(2, [&](int rank) -> std::string {
    World world = World::join(address, rank, 2, {.timeout = std::chrono::minutes(5)});
    ScheduleRun schedule(world, allgather_p2p(rotated), arguments(100));
    ScheduleRun other(world, allgather_p2p(rotated), arguments(100));
    schedule.run();
    schedule.synchronize();
    if (const pid_t child = fork(); child == 0) {
      alarm(60);  // in case it hangs
      schedule = std::move(other);
      _exit(0);
    } else {
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) return "the fork ended with status " + std::to_string(status);
    }
    schedule.run();
    schedule.synchronize();
    return "good";
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(all.said(rank), "good");
}

TEST(ScheduleFaults, FibersSeeADeadlockAtOnce) {
  std::string said[2];
  run_local(2,
            [&](World& world) {
              const Plan plan =
                  plan_of(rotated, "{}", R"({"name":"t","dtype":"u8","shape":[4],"role":"out"})",
                          R"({"op":"take","flag":"go","peer":["-",1,"rank"],"at":2},
                                     {"op":"post","flag":"go","peer":["-",1,"rank"],"at":3})",
                          "", R"("flags":[{"name":"go","kind":"binary"}],)");
              ScheduleRun schedule(world, plan, {.check = false});
              said[world.rank()] = thrown([&] { schedule.run(); });
            },
            {.seed = 1});
  for (const std::string& one : said)
    expect_parts(one, {"deadlock: ", "rank 0, stream main: take of 'go[0]' from rank 1 (ag.cpp:12)",
                       "rank 1, stream main: take of 'go[0]' from rank 0 (ag.cpp:12)"});
}

TEST(ScheduleFaults, ExecutorsSayWhoRunsSchedules) {
  const Plan plan = allgather_p2p(rotated);
  run_local(2, [&](World& world) {
    Executor executor(world);
    expect_parts(thrown([&] { executor.execute(plan, {}); }),
                 {"usage: plan 'test' is a host schedule: run it with ScheduleRun"});
  });
}

TEST(ScheduleFaults, WrongCallsAreRefusedOnAllRanks) {
  const auto said = [](const Plan& plan, const std::function<void(World&, ScheduleArguments&)>& change) {
    std::string text[2];
    run_local(2, [&](World& world) {
      ScheduleArguments given = arguments(8);
      change(world, given);
      text[world.rank()] = thrown([&] { ScheduleRun schedule(world, plan, given); });
    });
    EXPECT_EQ(text[0].substr(0, 7), text[1].substr(0, 7)) << text[0] << text[1];
    return text[0];
  };
  const Plan plan = allgather_p2p(rotated);
  const auto none = [](World&, ScheduleArguments&) {};
  Plan without = plan;
  without.extension.schedule = nullptr;
  expect_parts(said(without, none), {"usage: plan 'test' has no host schedule"});
  expect_parts(said(plan, [](World&, auto& given) { given.params.clear(); }), {"parameter 'n' has no value"});
  expect_parts(said(plan, [](World&, auto& given) { given.params["m"] = 1; }), {"no parameter 'm'"});
  expect_parts(said(plan, [](World&, auto& given) { given.params["nn"] = 1; }),
               {"plan 'test' has no parameter 'nn', did you mean 'n'?"});
  expect_parts(said(plan, [](World&, auto& given) { given.functions.erase("produce"); }),
               {"usage: rank 0: function 'produce' is neither built in"});
  Plan written = plan;
  schedule::Schedule lines = *plan.extension.schedule;
  lines.source = {{"mine.cpp", 7}};
  lines.body.front().at = 1;
  written.extension.schedule = std::make_shared<schedule::Schedule>(lines);
  expect_parts(
      said(written,
           [](World&, auto& given) {
             given.functions["prodcue"] = given.functions.extract("produce").mapped();
           }),
      {"usage: rank 0 (mine.cpp:7): function 'produce' is neither built in", "did you mean 'prodcue'?"});
  expect_parts(said(plan, [](World&, auto& given) { given.functions["produce"] = nullptr; }),
               {"function 'produce' of ScheduleArguments::functions is empty"});
  expect_parts(said(plan, [](World&, auto& given) { given.buffers["t11"] = nullptr; }),
               {"no tensor 't11', did you mean 't1'?"});
  expect_parts(said(plan, [](World&, auto& given) { given.buffers["t2"] = nullptr; }), {"no tensor 't2'"});
  expect_parts(said(plan, [](World& world, auto& given) { given.params["n"] = world.rank() + 1; }),
               {"mismatch: ranks 0 and 1 disagree on the schedule", "n = 1", "n = 2"});
  // Only one rank has the function.
  expect_parts(said(plan,
                    [](World& world, auto& given) {
                      if (world.rank()) given.functions.erase("consume");
                    }),
               {"usage: rank 1: ", "'consume'"});
  ScheduleArguments extents;
  const Plan product = ag_matmul_p2p(rotated, "f32");
  expect_parts(said(product,
                    [](World&, auto& given) {
                      given.params = {{"M", 5}, {"K", 2}, {"N", 2}};
                    }),
               {"an axis of 'A' would leave elements out: ( M / ranks ) is 5 / 2"});
  expect_parts(
      said(
          plan_of(
              rotated, "{}",
              R"({"name":"a","dtype":"f32","shape":[2,3],"role":"in"},{"name":"c","dtype":"f32","shape":[2,2],"role":"out"})",
              R"({"op":"call","fn":"matmul","writes":[["c"]],"reads":[["a"],["a"]]})", ""),
          [](World&, auto& given) {
            given.params.clear();
            given.check = false;
          }),
      {"rank 0: matmul of f32[2, 3] and f32[2, 3] to f32[2, 2]: the extents do not fit"});
}

/// A rank needs only the functions that it calls itself.
TEST(ScheduleFaults, ARankHasTheFunctionsThatItCalls) {
  const Plan plan = plan_of(
      rotated, "{}",
      R"({"name":"x","dtype":"i32","shape":[4],"role":"in"},{"name":"y","dtype":"i32","shape":[4],"role":"out"})",
      R"({"op":"copy","dst":["y"],"src":["x"]},
         {"op":"if","p":["==","rank",1],"then":[{"op":"call","fn":"mine","writes":[],"reads":[["y"]]}]})",
      R"({"name":"mine","writes":0,"reads":1})");
  for (const int who : {0, 1}) {
    std::string said[2];
    int calls = 0;
    run_local(2, [&](World& world) {
      ScheduleArguments given;
      if (world.rank() == who) given.functions["mine"] = [&](const HostCall&) { ++calls; };
      said[world.rank()] = thrown([&] {
        ScheduleRun schedule(world, plan, given);
        schedule.run();
        schedule.synchronize();
        world.barrier();
      });
    });
    EXPECT_EQ(calls, who);
    for (const std::string& one : said) {
      if (who == 1)
        EXPECT_EQ(one, "nothing");
      else
        expect_parts(one, {"usage: ", "rank 1: function 'mine' is neither built in"});
    }
  }
}

/// The error comes before anything is allocated, and names the largest tensors.
TEST(ScheduleFaults, WhatThereIsNoRoomForIsNamed) {
  const Plan plan = plan_of(
      rotated, "{}",
      R"({"name":"x","dtype":"f32","shape":[4],"role":"in"},{"name":"y","dtype":"f32","shape":[4],"role":"out"},
         {"name":"huge","dtype":"f32","shape":[281474976710656],"role":"temp"})",
      R"({"op":"copy","dst":["huge",[0,0,4]],"src":["x"]},{"op":"copy","dst":["y"],"src":["huge",[0,0,4]]})",
      "");
  run_local(2, [&](World& world) {
    expect_parts(thrown([&] { ScheduleRun schedule(world, plan, {}); }),
                 {"resources: ", "schedule 'test' needs 1125899906842656 bytes on rank ",
                  "('huge' 1125899906842624, 'x' 16, 'y' 16), but this host has "});
  });
}

/// The ranks are processes, so that each rank's address space is used only for its own threads' stacks.
TEST(ScheduleFaults, ThreadsThatOneRankCannotHaveAreAnErrorOfAll) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  const std::string address = fresh_address();
  Processes all(2, [&](int rank) {
    World world = World::join(address, rank, 2);
    const std::string said = thrown([&] {
      std::optional<ScarceMemory> scarce;
      if (rank == 1) scarce.emplace(200);
      ScheduleRun schedule(world, allgather_p2p({Order::rotated, Style::pool, 300}), arguments(10));
    });
    // Nothing is left behind that would disturb a reset, and threads can be made again.
    world.reset();
    ScheduleRun schedule(world, allgather_p2p(rotated), arguments(10));
    schedule.run();
    schedule.synchronize();
    return said;
  });
  for (int rank = 0; rank < 2; ++rank)
    expect_parts(all.said(rank), {"resources: rank 1: no thread for a stream: ", "; use fewer, or raise"});
}

}  // namespace
}  // namespace chorale::test
