// These host schedules launch plans of thread blocks on the CPU: an all-reduce after a matrix product, an
// all-gather beside one, and launches from several streams. The tests also cover calls that do not fit, and
// peers that never come.

#include <gtest/gtest.h>

#include <chrono>

#include "chorale/dsl/registry.hpp"
#include "chorale/schedule.hpp"
#include "tests/unit/schedule/schedules.hpp"
#include "tests/unit/thrown.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale::test {
namespace {

constexpr int runs = 10;
constexpr uint64_t m = 6, k = 8, n = 5;
const schedule::Values sizes{{"m", m}, {"k", k}, {"n", n}};

Plan block_plan(const char* name, int ranks) {
  return dsl::build(name, {{"ranks", std::to_string(ranks)}}).compile().plan;
}

/// The inputs are small whole numbers, so that every order of summation is exact.
float a_at(int run, int rank, uint64_t row, uint64_t at) {
  return float(int((row * 3 + at * 2 + uint64_t(run) * 7 + uint64_t(rank) * 11) % 5) - 2);
}
float b_at(int rank, uint64_t at, uint64_t column) {
  return float(int((at + column * 7 + uint64_t(rank)) % 3) - 1);
}
float product(int run, int rank, uint64_t row, uint64_t column) {
  float sum = 0;
  for (uint64_t at = 0; at < k; ++at) sum += a_at(run, rank, row, at) * b_at(rank, at, column);
  return sum;
}
float summed(int run, int ranks, uint64_t row, uint64_t column) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += product(run, rank, row, column);
  return sum;
}

struct Data {
  std::vector<float> a = std::vector<float>(m * k), b = std::vector<float>(k * n);
  explicit Data(int rank) {
    for (uint64_t at = 0; at < b.size(); ++at) b[at] = b_at(rank, at / n, at % n);
  }
  void set(int run, int rank) {
    for (uint64_t at = 0; at < a.size(); ++at) a[at] = a_at(run, rank, at / k, at % k);
  }
};

std::string compare(const char* what, int run, const float* found, const std::vector<float>& expected) {
  for (size_t at = 0; at < expected.size(); ++at)
    if (found[at] != expected[at])
      return fmt::format("{}, run {}: element {} is {}, not {}", what, run, at, found[at], expected[at]);
  return "good";
}

/// Runs each reduction on one binding, with new data in each run.
std::string reduces(World& world) {
  const int rank = world.rank(), ranks = world.ranks();
  Data data(rank);
  std::vector<float> c(m * n);
  ScheduleRun schedule(world, matmul_allreduce(),
                       {.buffers = {{"A", data.a.data()}, {"B", data.b.data()}, {"C", c.data()}},
                        .params = sizes,
                        .plans = {{"reduce", block_plan("allreduce_one_shot", ranks)}}});
  for (int run = 0; run < runs; ++run) {
    data.set(run, rank);
    schedule.run();
    schedule.synchronize();
    std::vector<float> expected;
    for (uint64_t at = 0; at < m * n; ++at) expected.push_back(summed(run, ranks, at / n, at % n));
    if (const std::string said = compare("C", run, c.data(), expected); said != "good") return said;
  }
  return "good";
}

std::string gathers(World& world) {
  const int rank = world.rank(), ranks = world.ranks();
  Data data(rank);
  ScheduleRun schedule(world, allgather_beside_matmul(),
                       {.buffers = {{"A", data.a.data()}, {"B", data.b.data()}},
                        .params = sizes,
                        .plans = {{"gather", block_plan("allgather_direct", ranks)},
                                  {"reduce", block_plan("allreduce_one_shot", ranks)}}});
  for (int run = 0; run < runs; ++run) {
    data.set(run, rank);
    schedule.run();
    schedule.synchronize();
    std::vector<float> g, c, d;
    for (uint64_t at = 0; at < uint64_t(ranks) * m * k; ++at)
      g.push_back(a_at(run, int(at / (m * k)), at % (m * k) / k, at % k));
    for (uint64_t at = 0; at < m * n; ++at) {
      c.push_back(product(run, rank, at / n, at % n));
      d.push_back(summed(run, ranks, at / n, at % n));
    }
    const auto at = [&](const char* name) { return static_cast<const float*>(schedule.buffer(name)); };
    for (const std::string& said :
         {compare("G", run, at("G"), g), compare("C", run, at("C"), c), compare("D", run, at("D"), d)})
      if (said != "good") return said;
    world.barrier();  // a peer's next run writes into this rank's G
  }
  return "good";
}

class Launches : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Schedules, Launches, testing::Values(1, 2, 4), testing::PrintToStringParamName());

TEST_P(Launches, AnAllreduceBehindAMatmul) {
  run_local(GetParam(), [](World& world) { EXPECT_EQ(reduces(world), "good"); });
}
TEST_P(Launches, AnAllgatherBesideAMatmulAndLaunchesOnTwoStreams) {
  run_local(GetParam(), [](World& world) { EXPECT_EQ(gathers(world), "good"); });
}
TEST_P(Launches, EveryOrderOfFibersGivesTheSame) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    run_local(GetParam(),
              [](World& world) {
                EXPECT_EQ(reduces(world), "good");
                EXPECT_EQ(gathers(world), "good");
              },
              {.seed = seed});
  }
}
TEST_P(Launches, RanksAsProcesses) {
  const std::string address = fresh_address();
  const int ranks = GetParam();
  Processes all(ranks, [&](int rank) {
    World world = World::join(address, rank, ranks);
    const std::string said = reduces(world);
    return said == "good" ? gathers(world) : said;
  });
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(all.said(rank), "good");
}

std::string refused(const Plan& schedule, const ScheduleArguments& arguments) {
  std::string said;
  run_local(2, [&](World& world) {
    const std::string mine = thrown([&] { ScheduleRun(world, schedule, arguments); });
    if (world.rank() == 0) said = mine;
  });
  return said;
}

TEST(LaunchFaults, WhatDoesNotFitIsRefusedWhenTheScheduleIsBound) {
  const Plan reduce = matmul_allreduce();
  const Plan two = block_plan("allreduce_one_shot", 2);
  EXPECT_EQ(refused(reduce, {.params = sizes, .plans = {{"redcue", two}}}),
            "usage: launch of 'reduce', rank 0 (tp.cpp:11): it is not in ScheduleArguments::plans, "
            "which has 'redcue'");
  EXPECT_EQ(
      refused(reduce, {.params = sizes, .plans = {{"reduce", block_plan("allreduce_one_shot", 4)}}}),
      "usage: launch of 'reduce', rank 0 (tp.cpp:11): plan 'allreduce_one_shot' is for 4 ranks, but the "
      "schedule runs on 2");
  EXPECT_EQ(
      refused(reduce, {.params = sizes, .plans = {{"reduce", reduce}}}),
      "usage: launch of 'reduce', rank 0 (tp.cpp:11): plan 'test' is a host schedule, and has no thread "
      "blocks");
  EXPECT_EQ(
      refused(reduce, {.params = sizes, .plans = {{"reduce", block_plan("allgather_direct", 2)}}}),
      "usage: launch of 'reduce', rank 0 (tp.cpp:11): the views are 120 bytes of input and 120 of output, "
      "but plan 'allgather_direct' (allgather) takes 60 and 120 on 2 ranks: launch it with views of "
      "these sizes");
}

TEST(LaunchFaults, ViewsThatDoNotFitEachOtherAreFound) {
  const auto launched = [](const char* dst_type, const char* dst) {
    return launching(
        tensor("A", R"("m","n")", "in") + "," + tensor("C", R"("m","n")", "out", dst_type),
        fmt::format(R"({{"op":"launch","plan":"reduce","dst":["C"{}],"src":["A"{}],"at":1}})", dst, dst));
  };
  const ScheduleArguments with{
      .params = sizes, .plans = {{"reduce", block_plan("allreduce_one_shot", 2)}}, .check = false};
  EXPECT_EQ(refused(launched("i32", ""), with),
            "usage: launch of 'reduce', rank 0 (tp.cpp:11): C[0:6, 0:5] is i32, but A[0:6, 0:5] is f32: cast "
            "one of them");
  EXPECT_EQ(refused(launched("f32", ",[1,0,2]"), with),
            "usage: launch of 'reduce', rank 0 (tp.cpp:11): the elements of C[0:6, 0:2] are not "
            "contiguous: copy them to a temporary");
}

TEST(LaunchFaults, BuffersThatOneRankCannotLaunchWithAreAnErrorOfAll) {
  // Rank 1 overwrites the memory that it reads.
  const Plan schedule = launching(
      tensor("C", R"(["*",2,"m"],"n")", "out"),
      R"({"op":"launch","plan":"reduce","dst":["C",[0,["-","m",["*","rank",["-","m",1]]],"m"]],"src":["C",[0,0,"m"]],"at":1})");
  std::string said[2];
  run_local(
      2,
      [&](World& world) {
        said[world.rank()] = thrown([&] {
          ScheduleRun(
              world, schedule,
              {.params = sizes, .plans = {{"reduce", block_plan("allreduce_one_shot", 2)}}, .check = false});
        });
      },
      {.timeout = std::chrono::minutes(5)});
  EXPECT_EQ(said[0].find("other: rank 1: rank 1: input ["), 0u) << said[0];
  EXPECT_EQ(said[1].find("usage: rank 1: input ["), 0u) << said[1];
}

TEST(LaunchFaults, BuffersThatOverlapAreRefused) {
  const Plan schedule = matmul_allreduce();
  std::vector<float> room(m * k + k * n + m * n);
  float *const a = room.data(), *const b = a + m * k, *const c = b + k * n;
  const auto bound = [&](float* to_b, float* to_c) {
    return refused(schedule, {.buffers = {{"A", a}, {"B", to_b}, {"C", to_c}},
                              .params = sizes,
                              .plans = {{"reduce", block_plan("allreduce_one_shot", 2)}}});
  };
  const std::string what =
      "overlap: give each tensor memory of its own; only inputs that the schedule does not write may share "
      "it";
  EXPECT_EQ(bound(b, c), "nothing");
  EXPECT_EQ(bound(a, c), "nothing");
  EXPECT_EQ(bound(b, a), "usage: the buffers of 'A' and 'C' " + what);
  EXPECT_EQ(bound(b, c - 1), "usage: the buffers of 'B' and 'C' " + what);
  EXPECT_EQ(bound(nullptr, c), fmt::format("usage: the buffer of 'B' is null: pass memory of {} bytes, or "
                                           "leave it out so that it is allocated",
                                           k * n * sizeof(float)));
}

/// Rank 0 launches alone, or in another order.
TEST(LaunchFaults, RanksLaunchTheSameInTheSameOrder) {
  const auto either = [](const std::string& one, const std::string& other) {
    return launching(tensor("A", R"("m","n")", "in") + "," + tensor("C", R"("m","n")", "out") + "," +
                         tensor("D", R"("m","n")", "out"),
                     fmt::format(R"({{"op":"if","p":["==","rank",0],"then":[{}],"else":[{}]}})", one, other));
  };
  const std::string x = R"({"op":"launch","plan":"x","dst":["C"],"src":["A"],"at":1})";
  const std::string y = R"({"op":"launch","plan":"y","dst":["D"],"src":["A"],"at":2})";
  const Plan two = block_plan("allreduce_one_shot", 2);
  const ScheduleArguments with{.params = sizes, .plans = {{"x", two}, {"y", two}}, .check = false};
  EXPECT_EQ(refused(either(x, ""), with),
            "usage: rank 0 launches 1 plans, but rank 1 0: every rank takes part in every launch");
  EXPECT_EQ(refused(either(x + "," + y, y + "," + x), with),
            "usage: the ranks disagree on launch 1: launch of 'x', rank 0 (tp.cpp:11) from A[0:6, 0:5] to "
            "C[0:6, 0:5], and launch of 'y', rank 1 (tp.cpp:12) from A[0:6, 0:5] to D[0:6, 0:5]; launch the "
            "same plans in the same order");
  // The compiler's checks report it at the author's line.
  ScheduleArguments checked = with;
  checked.check = true;
  EXPECT_NE(refused(either(x, ""), checked).find("tp.cpp:11: error: the launch on rank 0 never ends"),
            std::string::npos)
      << refused(either(x, ""), checked);
}

TEST(LaunchFaults, APeerThatNeverRunsIsNamed) {
  std::string said[2];
  run_local(2,
            [&](World& world) {
              ScheduleRun schedule(
                  world, matmul_allreduce(),
                  {.params = sizes, .plans = {{"reduce", block_plan("allreduce_one_shot", 2)}}});
              said[world.rank()] = thrown([&] {
                while (world.rank() == 1) schedule.check();
                schedule.run();
              });
            },
            {.timeout = std::chrono::seconds(2)});
  for (const std::string& one : said) {
    EXPECT_EQ(one.find("timed_out: "), 0u) << one;
    EXPECT_NE(one.find("a launch of rank 0 has made no progress for 2 s"), std::string::npos) << one;
  }
  EXPECT_NE(said[0].find("rank 0, stream main: launch 'reduce' to C[0:6, 0:5] (tp.cpp:11)"),
            std::string::npos)
      << said[0];
}

TEST(LaunchFaults, AnAbortEndsALaunchThatWaits) {
  std::string said[2];
  run_local(2, [&](World& world) {
    ScheduleRun schedule(world, matmul_allreduce(),
                         {.params = sizes, .plans = {{"reduce", block_plan("allreduce_one_shot", 2)}}});
    said[world.rank()] = thrown([&] {
      if (world.rank() == 0) schedule.run();
      if (world.rank() == 1) world.abort("enough");
      schedule.check();
    });
  });
  for (const std::string& one : said) EXPECT_EQ(one.find("aborted: "), 0u) << one;
}

}  // namespace
}  // namespace chorale::test
