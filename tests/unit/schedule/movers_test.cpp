// These tests check transfers via every mover: boxes of any form, several movers at once, and faults.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <thread>

#include "chorale/dsl/registry.hpp"
#include "chorale/schedule.hpp"
#include "executor/schedule/copy_part.hpp"
#include "tests/unit/schedule/exchange.hpp"
#include "tests/unit/schedule/schedules.hpp"
#include "tests/unit/thrown.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale::test {
namespace {

using schedule::Mover;

constexpr Mover all_movers[] = {Mover::ce_put, Mover::ce_get, Mover::plan};

const Exchange exchanges[] = {
    {DType::i32, 5, 6, 7},    // short rows
    {DType::u8, 4, 2, 3},     // one byte
    {DType::u8, 4, 5, 131},   // rows of no width that is a power of two
    {DType::f64, 9, 3, 514},  // rows of whole units
    {DType::bf16, 21, 33, 66},
};

const Form rotated_form{Order::rotated, Style::two, 1};

ScheduleArguments arguments(int64_t n, Mover mover) {
  ScheduleArguments arguments{.params = {{"n", n}}, .mover = mover};
  arguments.functions["produce"] = arguments.functions["consume"] = [](const HostCall&) {};
  return arguments;
}

/// Runs with new data on one binding.
/// \return "good", or the error
std::string exchanged(World& world, const Exchange& of, const std::vector<Mover>& via, int runs) {
  const uint64_t rank = uint64_t(world.rank()), ranks = uint64_t(world.ranks());
  ScheduleRun schedule(world, exchange(uint32_t(ranks), of.dtype, via), {.params = of.params()});
  for (int run = 0; run < runs; ++run) {
    const std::vector<uint8_t> in = exchange_input(of, run, rank, ranks);
    std::memcpy(schedule.buffer("X"), in.data(), in.size());
    schedule.run();
    schedule.synchronize();
    const std::vector<uint8_t> expected = exchange_output(of, run, rank, ranks);
    const uint8_t* const got = static_cast<const uint8_t*>(schedule.buffer("Y"));
    const auto [wanted, found] = std::mismatch(expected.begin(), expected.end(), got);
    if (wanted != expected.end())
      return fmt::format("{} of {} x {} x {}, via {}: run {}, byte {} is {}, not {}", dtype_name(of.dtype),
                         of.h, of.w, of.c, schedule::mover_names[size_t(via[0])], run, found - got, *found,
                         *wanted);
  }
  world.barrier();  // peers may still read this rank's memory
  return "good";
}

class Exchanges : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Exchanges, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST_P(Exchanges, BoxesOfAnyForm) {
  run_local(GetParam(), [](World& world) {
    for (const Mover mover : all_movers)
      for (const Exchange& of : exchanges) EXPECT_EQ(exchanged(world, of, {mover}, 5), "good");
  });
}

TEST_P(Exchanges, MoversSideBySide) {
  run_local(GetParam(), [](World& world) {
    for (const Exchange& of : exchanges) {
      EXPECT_EQ(exchanged(world, of, {Mover::plan, Mover::ce_put, Mover::ce_get}, 10), "good");
      EXPECT_EQ(
          exchanged(world, of, {Mover::ce_put, Mover::plan, Mover::ce_get, Mover::plan, Mover::ce_put}, 10),
          "good");
    }
  });
}

/// Ranks agree whether they say it or leave it to the executor.
TEST(Movers, AutomaticIsCePut) {
  run_local(2, [](World& world) {
    const Mover mover = world.rank() ? Mover::automatic : Mover::ce_put;
    ScheduleRun schedule(world, allgather_p2p(rotated_form), arguments(100, mover));
    EXPECT_EQ(thrown([&] { schedule.run(); }), "nothing");
    world.barrier();
  });
}

TEST(Movers, ManyBlocks) {
  run_local(3, [](World& world) {
    // A transfer has up to 570 KB, so via `plan` it has several blocks. They end within rows.
    const Exchange large{DType::i32, 12, 65, 251};
    for (const Mover mover : all_movers) EXPECT_EQ(exchanged(world, large, {mover}, 1), "good");
  });
}

TEST(Movers, RanksAsProcesses) {
  const std::string address = fresh_address();
  Processes all(4, [&](int rank) {
    World world = World::join(address, rank, 4);
    for (const Mover mover : all_movers) {
      for (const Exchange& of : exchanges) {
        std::string said = exchanged(world, of, {mover}, 10);
        if (said != "good") return said;
      }
    }
    return std::string("good");
  });
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(all.said(rank), "good");
}

TEST(Movers, EveryOrderOfFibersGivesTheSame) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    run_local(3,
              [](World& world) {
                for (const Mover mover : all_movers)
                  for (const Exchange& of : {exchanges[0], exchanges[2]})
                    EXPECT_EQ(exchanged(world, of, {mover}, 3), "good");
              },
              {.seed = seed});
  }
}

/// Tests the function that GPUs copy with: threads copy rows of any length at any address.
TEST(Movers, RowsByWords) {
  for (const uint32_t threads : {1u, 7u, 32u, 96u}) {
    for (const uint64_t bytes : {1, 2, 15, 16, 48, 129, 1040}) {
      for (const uint64_t rows : {1, 2, 5, 40}) {
        for (const uint64_t shift : {0, 1, 2, 4, 8}) {
          for (const uint64_t gap : {0, 3, 8, 16}) {
            const uint64_t to_pitch = bytes + gap, from_pitch = bytes + 2 * gap;
            std::vector<uint64_t> from((rows * from_pitch + 64) / 8), to((rows * to_pitch + 64) / 8);
            uint8_t* const source = reinterpret_cast<uint8_t*>(from.data());
            for (uint64_t at = 0; at < from.size() * 8; ++at) source[at] = exchange_byte(0, 1, at);
            std::vector<uint8_t> expected(to.size() * 8);
            for (uint64_t row = 0; row < rows; ++row)
              std::memcpy(expected.data() + shift + row * to_pitch, source + shift + row * from_pitch, bytes);
            const schedule_run::Copy copy{.to = reinterpret_cast<char*>(to.data()) + shift,
                                          .from = reinterpret_cast<const char*>(source) + shift,
                                          .bytes = bytes,
                                          .rows = rows,
                                          .to_pitch = to_pitch,
                                          .from_pitch = from_pitch};
            for (uint32_t thread = 0; thread < threads; ++thread) {
              Group group;
              group.rank = thread;
              group.size = threads;
              // As thread blocks do, each part copies a share of the bytes, which may end within a row.
              const uint64_t middle = bytes * rows / 3;
              schedule_run::copy_part(group, copy, 0, middle);
              schedule_run::copy_part(group, copy, middle, bytes * rows);
            }
            ASSERT_EQ(std::memcmp(to.data(), expected.data(), expected.size()), 0)
                << threads << " threads, " << rows << " rows of " << bytes << ", " << shift << " and " << gap;
          }
        }
      }
    }
  }
}

// -- What goes wrong

void expect_said(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* const part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

/// Returns the errors of ranks 0 to 2 when rank 2 never runs.
std::array<std::string, 3> without_rank_2(Mover mover) {
  std::array<std::string, 3> said;
  run_local(3,
            [&](World& world) {
              ScheduleRun schedule(world, allgather_p2p(rotated_form), arguments(100, mover));
              said[size_t(world.rank())] = thrown([&] {
                if (world.rank() != 2) schedule.run();
                while (world.rank() == 2) {
                  schedule.check();
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
              });
            },
            {.timeout = std::chrono::seconds(2)});
  return said;
}

TEST(MoverFaults, APeerThatNeverLaunchesIsNamedWithTheLine) {
  // A block of rank 0 and one of rank 1 wait for rank 2. The first to give up is named.
  for (const std::string& one : without_rank_2(Mover::plan))
    expect_said(one,
                {"timed_out: ", "(ag.cpp:12) wait on memory channel ", " from rank 2: expected 1, seen 0"});
}

TEST(MoverFaults, WhatAFunctionThrowsEndsEveryTransfer) {
  for (const Mover mover : all_movers) {
    std::string said[3];
    run_local(3, [&](World& world) {
      ScheduleArguments given = arguments(10000, mover);
      int calls = 0;
      given.functions["produce"] = [&](const HostCall& call) {
        if (call.rank == 1 && ++calls == 3) throw std::runtime_error("the disk is full");
      };
      ScheduleRun schedule(world, allgather_p2p(rotated_form), given);
      said[world.rank()] = thrown([&] {
        for (int run = 0; run < 5; ++run) schedule.run();
        world.barrier();
      });
      thrown([&] { schedule.synchronize(); });
      world.reset();
      ScheduleRun again(world, allgather_p2p(rotated_form), arguments(10000, mover));
      EXPECT_EQ(thrown([&] { again.run(); }), "nothing");
      world.barrier();
    });
    for (const std::string& one : said) expect_said(one, {"aborted by rank 1", "the disk is full"});
  }
}

TEST(MoverFaults, APeerThatDiesIsNamed) {
  for (const Mover mover : all_movers) {
    const std::string address = fresh_address();
    Processes all(2, [&](int rank) {
      World world = World::join(address, rank, 2, {.timeout = std::chrono::minutes(5)});
      ScheduleRun schedule(world, allgather_p2p(rotated_form), arguments(100, mover));
      if (rank == 1) _exit(0);
      return thrown([&] { schedule.run(); });
    });
    expect_said(all.said(0), {"peer_lost: rank 1", "died"});
    all.said(1);
  }
}

/// Returns a plan of two ranks that each send before they receive.
Plan sends_first(const char* mover) {
  std::string body =
      R"({"op":"send","src":["s"],"peer":["-",1,"rank"],"via":"@","at":1},
         {"op":"recv","dst":["t"],"peer":["-",1,"rank"],"via":"@","at":2})";
  for (size_t at; (at = body.find('@')) != std::string::npos;) body.replace(at, 1, mover);
  return plan_of(rotated_form, "{}",
                 R"({"name":"s","dtype":"u8","shape":[4],"role":"in"},
                    {"name":"t","dtype":"u8","shape":[4],"role":"out"})",
                 body, "");
}

TEST(MoverFaults, ADeadlockIsAFinding) {
  run_local(2, [](World& world) {
    for (const char* const mover : {"ce_put", "ce_get", "plan"}) {
      expect_said(thrown([&] { ScheduleRun schedule(world, sends_first(mover), {}); }),
                  {"usage: ", "ag.cpp:11: error: the send to rank 1 on rank 0 never ends", "[deadlock]"});
    }
  });
}

/// Via `plan` a group is one launch: what ends with copy engines need not end with launches.
TEST(MoverFaults, TheCheckKnowsWhatMoversTransfersGet) {
  const Plan plan = plan_of(
      rotated_form, "{}",
      R"({"name":"s","dtype":"u8","shape":[8],"role":"in"},{"name":"t","dtype":"u8","shape":[8],"role":"out"})",
      R"({"op":"if","p":["==","rank",0],
          "then":[{"op":"fill","dst":["t"],"value":0},
                  {"op":"group","token":1,"do":[
                    {"op":"send","src":["s",[0,0,4]],"peer":1,"tag":1,"via":"plan"},
                    {"op":"send","src":["s",[0,4,4]],"peer":1,"tag":2}],"at":0},
                  {"op":"wait","token":1}],
          "else":[{"op":"recv","dst":["t",[0,4,4]],"peer":0,"tag":2,"at":1},
                  {"op":"recv","dst":["t",[0,0,4]],"peer":0,"tag":1,"via":"plan","at":2}]})",
      "");
  run_local(2, [&](World& world) {
    expect_said(thrown([&] { ScheduleRun schedule(world, plan, {.mover = Mover::plan}); }),
                {"[deadlock]", "with its movers"});
    ScheduleRun schedule(world, plan, {.mover = Mover::ce_put});
    EXPECT_EQ(thrown([&] { schedule.run(); }), "nothing");
    world.barrier();
  });
}

TEST(MoverFaults, GroupsThatAreNoLaunchAreRefused) {
  run_local(3, [](World& world) {
    expect_said(thrown([&] {
                  ScheduleRun schedule(world, allgather_p2p({Order::linear, Style::two, 1}),
                                       arguments(8, Mover::plan));
                }),
                {"usage: ", "group 1 of transfers via 'plan' of rank", "not in group 1 there", "ag.cpp:1",
                 "let the n-th groups of the ranks match"});
    const Plan alone = plan_of(
        rotated_form, "{}",
        R"({"name":"s","dtype":"u8","shape":[4],"role":"in"},{"name":"t","dtype":"u8","shape":[4],"role":"out"})",
        R"({"op":"if","p":["==","rank",0],"then":[{"op":"fill","dst":["t"],"value":0},
                                                  {"op":"send","src":["s"],"peer":1,"via":"plan","at":1}],
            "else":[{"op":"if","p":["==","rank",1],"then":[{"op":"recv","dst":["t"],"peer":0,"via":"plan"}],
                     "else":[{"op":"fill","dst":["t"],"value":0}]}]})",
        "");
    expect_said(
        thrown([&] { ScheduleRun schedule(world, alone, {}); }),
        {"usage: ", "ag.cpp:11: error: the send to rank 1 on rank 0 never ends with its movers [deadlock]",
         "every rank takes part in every launch"});
    expect_said(thrown([&] { ScheduleRun schedule(world, alone, {.check = false}); }),
                {"usage: ", "via 'plan' rank 0 moves 1 group, but rank 2 moves 0"});
  });
}

/// The plan of a group is not confused with an application's plan of the same name.
TEST(MoverFaults, APlanWithTheNameOfAGroupIsRefused) {
  const auto with = [](const char* launch) {
    return plan_of(
        rotated_form, "{}",
        R"({"name":"s","dtype":"u8","shape":[4],"role":"in"},{"name":"t","dtype":"u8","shape":[4],"role":"out"},
           {"name":"u","dtype":"u8","shape":[4],"role":"out"})",
        fmt::format(R"({{"op":"group","token":1,"do":[
             {{"op":"send","src":["s"],"peer":["-",1,"rank"],"via":"plan"}},
             {{"op":"recv","dst":["t"],"peer":["-",1,"rank"],"via":"plan"}}]}},{{"op":"wait","token":1}},
             {{"op":"launch","plan":"{}","dst":["u"],"src":["t"]}})",
                    launch),
        "");
  };
  const Plan own = dsl::build("allreduce_one_shot", {{"ranks", "2"}}).compile().plan;
  run_local(2, [&](World& world) {
    const auto said = [&](const char* launch, std::map<std::string, Plan, std::less<>> plans) {
      return thrown([&] { ScheduleRun(world, with(launch), {.plans = std::move(plans), .check = false}); });
    };
    for (const std::string& one :
         {said("group 1 via 'plan'", {{"group 1 via 'plan'", own}}), said("group 1 via 'plan'", {}),
          said("own", {{"own", own}, {"group 1 via 'plan'", own}})})
      expect_said(one, {"usage: ", "called \"group 1 via 'plan'\"", "give it another name"});
    EXPECT_EQ(said("own", {{"own", own}}), "nothing");
    world.barrier();
  });
}

}  // namespace
}  // namespace chorale::test
