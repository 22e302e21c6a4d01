// Runs the snippets of docs/applications.md on the CPU. Their results are there when the last line has
// returned.

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/documented/pages.hpp"
#include "tests/documented/shown/applications_headers.inc"
#include "tests/forked.hpp"
#include "tests/free_port.hpp"

namespace chorale::test {
namespace {

TEST(Applications, AnExecutorRunsAPlan) {
  const Folder here;
  const std::string ADDRESS = "shm://pages-" + std::to_string(getpid());
  constexpr int ranks = 8;
  const std::vector<int> ended = forked(ranks, [&](int rank) {
    std::vector<uint16_t> in = bf16(values_of(rank, 3000)), out(in.size());
    void *const x = in.data(), *const y = out.data();
    const uint64_t n = in.size() * sizeof(uint16_t);
#include "tests/documented/shown/execute.inc"
    size_t x_bytes = n, y_bytes = n;
    {
#include "tests/documented/shown/needs.inc"
    }
    --y_bytes;
    bool refused = false;
    try {
#include "tests/documented/shown/needs.inc"
    } catch (const std::invalid_argument &) {
      refused = true;
    }
    if (!refused) return 2;
    const bool right = out == bf16(sums_of(ranks, in.size()));
    world.barrier();
    return right ? 0 : 1;
  });
  EXPECT_EQ(ended, std::vector<int>(ranks, 0));
}

TEST(Applications, ATableChoosesThePlan) {
  const Folder here;
  TuneTable table;
  table.set(plan_key({.ranks = 4}, "allreduce", 4096, DType::bf16),
            {.plan = "allreduce_all_pairs", .packet = "ll8"}, 1000);
  table.save("plans/tuned/cpu.json");
  run_local(4, [](World &world) {
    const int ranks = world.ranks();
    Executor executor(world);
    std::vector<uint16_t> in = bf16(values_of(world.rank(), 3000)), out(in.size());
    void *const x = in.data(), *const y = out.data();
    const uint64_t n = in.size() * sizeof(uint16_t);
#include "tests/documented/shown/tuned_plans.inc"
    EXPECT_EQ(out, bf16(sums_of(ranks, in.size())));
    EXPECT_EQ(chosen.name, "allreduce_all_pairs");
    EXPECT_EQ(chosen.packet, PacketForm::ll8);
    EXPECT_EQ(chosen.bytes, 4096u);
    world.barrier();
  });
}

TEST(Applications, AScheduleMultipliesMatrices) {
  const Folder here;
  run_local(4, [](World &world) {
    const int64_t m = 64, k = 24, n = 40, rows = m / world.ranks();
    std::vector<float> of_a = values_of(world.rank(), uint64_t(rows * k)),
                       of_b = values_of(9, uint64_t(k * n)), of_c(uint64_t(m * n)), expected(of_c.size());
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column)
        for (int64_t at = 0; at < k; ++at)
          expected[uint64_t(row * n + column)] += value_at(int(row / rows), uint64_t(row % rows * k + at)) *
                                                  value_at(9, uint64_t(at * n + column));
    void *const a = of_a.data(), *const b = of_b.data(), *const c = of_c.data(), *const stream = nullptr;
#include "tests/documented/shown/schedule_run.inc"
    EXPECT_EQ(of_c, expected);
    world.barrier();
  });
}

TEST(Applications, AnExchangeMovesMessages) {
  run_local(3, [](World &world) {
    const int rank = world.rank(), right = (rank + 1) % 3, left = (rank + 2) % 3;
    std::vector<float> to_right = values_of(rank, 5000), to_left = values_of(rank + 10, 70),
                       from_left(to_right.size()), from_right(to_left.size());
    const uint64_t n = to_right.size() * sizeof(float), m = to_left.size() * sizeof(float);
    void *const x = to_right.data(), *const y = to_left.data(), *const u = from_left.data(),
                *const v = from_right.data(), *const stream = nullptr;
#include "tests/documented/shown/exchange.inc"
    EXPECT_EQ(from_left, values_of(left, 5000));
    EXPECT_EQ(from_right, values_of(right + 10, 70));
    world.barrier();
  });
}

/// Rank 1 of three leaves; the others run an all-reduce without it.
TEST(Applications, SurvivorsGoOn) {
  std::vector<World> worlds = World::local(3);
  const auto body = [&](int of) {
    World &world = worlds[size_t(of)];
    const Config config = Config::load();
    Plan plan = make_plan("allreduce_all_pairs", 3);
    std::optional<Executor> executor(std::in_place, world, config);
    const std::vector<float> in = values_of(of, 1000);
    std::vector<float> out(in.size());
    const Arguments arguments{.in = in.data(), .out = out.data(), .bytes = in.size() * sizeof(float)};
    executor->execute(plan, arguments);
    EXPECT_EQ(out, sums_of(3, in.size()));
    world.barrier();
    if (of == 1) {
      executor.reset();
      const World left = std::move(world);
      return;
    }
#include "tests/documented/shown/survivors.inc"
    EXPECT_EQ(world.former_ranks(), (std::vector<int>{0, 2}));
    executor->execute(plan, arguments);
    for (uint64_t at = 0; at < out.size(); ++at) EXPECT_EQ(out[at], value_at(0, at) + value_at(2, at)) << at;
    world.barrier();
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.emplace_back(body, rank);
  for (std::thread &rank : ranks) rank.join();
}

}  // namespace
}  // namespace chorale::test
