// These tests run host schedules on the CPU: AllgatherP2p and AG_matmul_P2p in every order, style of streams
// and mover, with ranks as threads, processes and fibers. They cover replays and skew.

#include "chorale/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <random>
#include <thread>

#include "chorale/device/numeric.hpp"
#include "tests/unit/schedule/schedules.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale::test {
namespace {

using schedule::Mover;

constexpr int most_runs = 10;
constexpr Mover movers[] = {Mover::ce_put, Mover::ce_get};

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

/// Does all runs of an all-gather on one rank. Nothing between them makes ranks or runs wait.
/// \return "good", or the error
std::string allgather(World& world, const Form& form, Mover mover, uint64_t n, bool own_memory,
                      bool skewed = false, int runs = most_runs) {
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
                            schedule::mover_names[size_t(mover)], rank, at, got[at], expected);
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
  world.barrier();  // peers read this rank's memory
  return wrong.empty() ? "good" : wrong;
}

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Schedules, Ranks, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST_P(Ranks, AllgatherP2p) {
  run_local(GetParam(), [](World& world) {
    for (const Mover mover : movers)
      for (const Form& form : forms({1, 2, 4, 8}))
        for (const uint64_t n : {1, 1001})
          EXPECT_EQ(allgather(world, form, mover, n, n == 1), "good") << form.text();
  });
}

/// Two ranks are enough for this many elements, because ranks share a machine's memory: 16 MiB per rank.
TEST(Schedules, AllgatherP2pOfManyElements) {
  run_local(2, [](World& world) {
    for (const Mover mover : movers)
      EXPECT_EQ(allgather(world, {Order::rotated, Style::pool, 8}, mover, 4 << 20, false, false, 2), "good");
  });
}

/// A slow function delays run() too, so that results are there and buffers are free when it returns.
TEST(Schedules, RunReturnsWhenAllStreamsHaveEnded) {
  for (const Mover mover : movers) {
    run_local(2, [&](World& world) {
      std::atomic<int> calls{0};
      ScheduleArguments arguments{.params = {{"n", 100}}, .mover = mover};
      arguments.functions["produce"] = [&](const HostCall& call) {
        std::fill_n(static_cast<int32_t*>(call.writes[0].data), 100, call.rank + 1);
      };
      arguments.functions["consume"] = [&](const HostCall&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ++calls;
      };
      std::vector<int32_t> all(200);
      arguments.buffers["t1"] = all.data();
      ScheduleRun schedule(world, allgather_p2p({Order::rotated, Style::two, 1}), arguments);
      for (int run = 1; run <= 3; ++run) {
        std::fill(all.begin(), all.end(), 0);
        world.barrier();
        schedule.run();
        EXPECT_EQ(calls, run) << schedule::mover_names[size_t(mover)];
        EXPECT_EQ(std::count(all.begin(), all.begin() + 100, 1), 100);
        EXPECT_EQ(std::count(all.begin() + 100, all.end(), 2), 100);
      }
    });
  }
}

/// Rank 0 computes with the arrived data while the next exchange waits for rank 1. Rank 1 starts it only
/// after the computation has begun.
TEST(Schedules, AWaitIsForItsGroupAlone) {
  for (const Mover mover : movers) {
    std::promise<void> begun;
    const std::shared_future<void> has_begun = begun.get_future().share();
    bool in_vain = false;
    run_local(2, [&](World& world) {
      ScheduleArguments arguments{.mover = mover};
      if (world.rank() == 0) {
        arguments.functions["consume"] = [&](const HostCall& call) {
          EXPECT_EQ(static_cast<const int32_t*>(call.reads[0].data)[99], 7);
          begun.set_value();
        };
      } else {
        arguments.functions["consume"] = [](const HostCall&) {};
        arguments.functions["hold"] = [&](const HostCall&) {
          in_vain = has_begun.wait_for(std::chrono::seconds(10)) == std::future_status::timeout;
        };
      }
      ScheduleRun schedule(world, compute_beside_an_exchange(), arguments);
      std::fill_n(static_cast<int32_t*>(schedule.buffer("x")), 200, 7);
      schedule.run();
      schedule.synchronize();
      world.barrier();
    });
    EXPECT_FALSE(in_vain) << schedule::mover_names[size_t(mover)];
  }
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

/// Holds the extents of an all-gather and a product. `m` is that of all ranks.
struct Extents {
  uint64_t m, k, n;
};

/// Multiplies whole numbers that are small enough to be exact in every order of summation, or random numbers
/// in [-1, 1).
///
/// Random sums are about sqrt(k) / 3, some 5 for k = 256, and there an f32 has 5e-7 between its values: all k
/// roundings together are far below 1e-2. An addend too many or too few is 1/4. In bf16 only the sum is
/// rounded, to 1 / 256 of itself.
template <class T>
void ag_matmul(World& world, const Form& form, Mover mover, const char* dtype, Extents of,
               bool random = false) {
  const uint64_t ranks = uint64_t(world.ranks()), rank = uint64_t(world.rank());
  const auto [m, k, n] = of;
  const uint64_t rows = m / ranks;
  const auto random_at = [](uint64_t seed, uint64_t row, uint64_t column) {
    std::minstd_rand any(unsigned((seed << 28) + (row << 14) + column + 1));
    any.discard(2);
    return std::uniform_real_distribution<float>(-1, 1)(any);
  };
  const auto typed = [](float value) {
    if constexpr (is_narrow_float<T>) {
      return from_float<T>(value);
    } else {
      return T(value);
    }
  };
  const auto a_at = [&](int run, uint64_t row, uint64_t at) {
    return typed(random ? random_at(uint64_t(run) + 1, row, at)
                        : float(int(row * 3 + at * 2 + uint64_t(run)) % 5 - 2));
  };
  const auto b_at = [&](uint64_t at, uint64_t column) {
    return typed(random ? random_at(0, at, column) : float(int(at + column * 7) % 3 - 1));
  };
  std::vector<T> a(rows * k), b(k * n), c(m * n);
  ScheduleRun schedule(world, ag_matmul_p2p(form, dtype),
                       {.buffers = {{"A", a.data()}, {"B", b.data()}, {"C", c.data()}},
                        .params = {{"M", int64_t(m)}, {"K", int64_t(k)}, {"N", int64_t(n)}},
                        .mover = mover});
  for (uint64_t at = 0; at < b.size(); ++at) b[at] = b_at(at / n, at % n);
  const int runs = m * k > 1000 ? 2 : most_runs;
  for (int run = 0; run < runs; ++run) {
    for (uint64_t at = 0; at < a.size(); ++at) a[at] = a_at(run, rank * rows + at / k, at % k);
    schedule.run();
    schedule.synchronize();
    std::vector<double> expected(n);
    for (uint64_t row = 0; row < m; ++row) {
      std::fill(expected.begin(), expected.end(), 0);
      for (uint64_t i = 0; i < k; ++i) {
        const double left = double(widen(a_at(run, row, i)));
        for (uint64_t column = 0; column < n; ++column)
          expected[column] += left * double(widen(b[i * n + column]));
      }
      for (uint64_t column = 0; column < n; ++column) {
        const double bound = random ? 1e-2 * std::max(1.0, std::fabs(expected[column])) : 0;
        ASSERT_NEAR(double(widen(c[row * n + column])), expected[column], bound)
            << form.text() << " via " << schedule::mover_names[size_t(mover)] << " run " << run << ", row "
            << row << ", column " << column;
      }
    }
  }
  world.barrier();
}

TEST_P(Ranks, AgMatmulP2p) {
  run_local(GetParam(), [](World& world) {
    const Extents extents{uint64_t(world.ranks()) * 5, 24, 10};
    for (const Mover mover : movers)
      for (const Form& form : forms({1, 3})) {
        ag_matmul<float>(world, form, mover, "f32", extents);
        ag_matmul<bf16>(world, form, mover, "bf16", extents);
        ag_matmul<int32_t>(world, form, mover, "i32", extents);
      }
  });
}

/// Every mover runs with a different form.
TEST_P(Ranks, AgMatmulP2pOfMoreSizes) {
  run_local(GetParam(), [](World& world) {
    const std::vector<Form> all = forms({2, 8});
    for (const uint64_t m : {64, 96, 256}) {
      if (m % uint64_t(world.ranks()) != 0) continue;
      for (const uint64_t n : {8, 40}) {
        for (size_t mover = 0; mover < std::size(movers); ++mover) {
          ag_matmul<float>(world, all[mover], movers[mover], "f32", {m, m, n});
          ag_matmul<float>(world, all[mover], movers[mover], "f32", {m, m, n}, true);
        }
        ag_matmul<bf16>(world, all[0], Mover::ce_put, "bf16", {m, m, n}, true);
      }
    }
  });
}

}  // namespace
}  // namespace chorale::test
