// Host schedules on the CPU: AllgatherP2p and AG_matmul_P2p in every order, lane style and mover, ranks as
// threads, processes and fibers; replays, skew.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "chorale/device/numeric.hpp"
#include "chorale/schedule.hpp"
#include "tests/unit/schedule_run/schedules.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale::test {
namespace {

using host::Mover;

constexpr int runs = 10;
constexpr Mover movers[] = {Mover::ce_put, Mover::ce_get, Mover::kernel, Mover::staged, Mover::port};

int32_t value_at(int run, int rank, uint64_t index) {
  return int32_t((uint64_t(run) * 1000003 + uint64_t(rank) * 8191 + index) * 2654435761u);
}

std::vector<Form> forms(std::initializer_list<int> pools) {
  std::vector<Form> all;
  for (const Order order : {Order::linear, Order::rotated, Order::ring}) {
    all.push_back({order, Style::two, 1});
    for (const int pool : pools) all.push_back({order, Style::pool, pool});
  }
  return all;
}

/// All runs of an all-gather on one rank, with nothing between them that ranks or runs would wait at.
/// \return what is wrong; "good": nothing
std::string allgather(World& world, const Form& form, Mover mover, uint64_t n, bool own_memory,
                      bool skewed = false) {
  const int rank = world.rank(), ranks = world.ranks();
  int produced = 0, consumed = 0;
  std::string wrong;
  std::vector<int32_t> in(n), out(n * uint64_t(ranks));
  ScheduleArguments arguments{.params = {{"n", int64_t(n)}}, .mover = mover};
  if (own_memory) arguments.buffers = {{"t0", in.data()}, {"t1", out.data()}};
  arguments.functions["produce"] = [&](const HostCall& call) {
    if (skewed && produced % ranks == rank) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    int32_t* const to = static_cast<int32_t*>(call.writes[0].data);
    for (uint64_t at = 0; at < n; ++at) to[at] = value_at(produced, rank, at);
    ++produced;
  };
  arguments.functions["consume"] = [&](const HostCall& call) {
    const int32_t* const got = static_cast<const int32_t*>(call.reads[0].data);
    for (uint64_t at = 0; at < n * uint64_t(ranks) && wrong.empty(); ++at) {
      const int32_t expected = value_at(consumed, int(at / n), at % n);
      if (got[at] != expected)
        wrong = fmt::format("run {} of {} via {}, rank {}: element {} is {}, not {}", consumed, form.text(),
                            host::mover_names[size_t(mover)], rank, at, got[at], expected);
    }
    ++consumed;
  };
  ScheduleRun schedule(world, allgather_p2p(form), arguments);
  for (int run = 0; run < runs; ++run) schedule.run();
  schedule.synchronize();
  if (wrong.empty() && consumed != runs) wrong = fmt::format("{} runs ended", consumed);
  if (wrong.empty() && own_memory &&
      out != std::vector<int32_t>(static_cast<int32_t*>(schedule.buffer("t1")),
                                  static_cast<int32_t*>(schedule.buffer("t1")) + out.size()))
    wrong = "the caller's output is not the schedule's";
  world.barrier();  // peers read what is ours
  return wrong.empty() ? "good" : wrong;
}

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Schedules, Ranks, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST_P(Ranks, AllgatherP2p) {
  run_local(GetParam(), [](World& world) {
    for (const Mover mover : movers)
      for (const Form& form : forms({1, 2, 4}))
        for (const uint64_t n : {1, 1001})
          EXPECT_EQ(allgather(world, form, mover, n, n == 1), "good") << form.text();
  });
}

/// Groups of these orders have their other ends in one group of each peer.
TEST_P(Ranks, AllgatherP2pByLaunches) {
  run_local(GetParam(), [](World& world) {
    for (const Form& form : forms({1, 2, 4})) {
      if (form.order == Order::linear) continue;
      for (const uint64_t n : {1, 1001})
        EXPECT_EQ(allgather(world, form, Mover::plan, n, n == 1), "good") << form.text();
      EXPECT_EQ(allgather(world, form, Mover::plan, 70001, true, true), "good") << form.text();
    }
  });
}

TEST_P(Ranks, AllgatherP2pWithALateRank) {
  run_local(GetParam(), [](World& world) {
    for (const Mover mover : movers)
      for (const Form& form : {Form{Order::rotated, Style::two, 1}, Form{Order::linear, Style::pool, 2}})
        EXPECT_EQ(allgather(world, form, mover, 70001, true, true), "good") << form.text();
  });
}

TEST(Schedules, RanksAsProcesses) {
  const std::string address = fresh_address();
  Processes all(4, [&](int rank) {
    World world = World::join(address, rank, 4);
    for (const Mover mover : movers) {
      for (const bool own_memory : {false, true}) {
        for (const Form& form : forms({2})) {
          std::string said = allgather(world, form, mover, 5003, own_memory);
          if (said != "good") return said;
        }
      }
    }
    return std::string("good");
  });
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(all.said(rank), "good");
}

TEST(Schedules, EveryOrderOfFibersGivesTheSame) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    run_local(3,
              [](World& world) {
                for (const Mover mover : movers)
                  for (const Form& form : forms({2}))
                    EXPECT_EQ(allgather(world, form, mover, 7, false), "good");
              },
              {.seed = seed});
  }
}

/// Whole numbers so small that every order of summation is exact.
template <class T>
void ag_matmul(World& world, const Form& form, Mover mover, const char* dtype) {
  const uint64_t ranks = uint64_t(world.ranks()), rank = uint64_t(world.rank());
  const uint64_t rows = 5, m = ranks * rows, k = 24, n = 10;
  const auto a_at = [&](int run, uint64_t row, uint64_t at) {
    return int(row * 3 + at * 2 + uint64_t(run)) % 5 - 2;
  };
  const auto b_at = [&](uint64_t at, uint64_t column) { return int(at + column * 7) % 3 - 1; };
  const auto set = [](T& to, int value) {
    if constexpr (is_narrow_float<T>) {
      to = from_float<T>(float(value));
    } else {
      to = T(value);
    }
  };
  std::vector<T> a(rows * k), b(k * n), c(m * n);
  ScheduleRun schedule(world, ag_matmul_p2p(form, dtype),
                       {.buffers = {{"A", a.data()}, {"B", b.data()}, {"C", c.data()}},
                        .params = {{"M", int64_t(m)}, {"K", int64_t(k)}, {"N", int64_t(n)}},
                        .mover = mover});
  for (uint64_t at = 0; at < b.size(); ++at) set(b[at], b_at(at / n, at % n));
  for (int run = 0; run < runs; ++run) {
    for (uint64_t at = 0; at < a.size(); ++at) set(a[at], a_at(run, rank * rows + at / k, at % k));
    schedule.run();
    schedule.synchronize();
    for (uint64_t at = 0; at < c.size(); ++at) {
      int expected = 0;
      for (uint64_t i = 0; i < k; ++i) expected += a_at(run, at / n, i) * b_at(i, at % n);
      ASSERT_EQ(float(widen(c[at])), float(expected)) << form.text() << " run " << run << " at " << at;
    }
  }
  world.barrier();
}

TEST_P(Ranks, AgMatmulP2p) {
  run_local(GetParam(), [](World& world) {
    for (const Mover mover : movers)
      for (const Form& form : forms({1, 3})) {
        ag_matmul<float>(world, form, mover, "f32");
        ag_matmul<bf16>(world, form, mover, "bf16");
        ag_matmul<int32_t>(world, form, mover, "i32");
      }
  });
}

}  // namespace
}  // namespace chorale::test
