// These tests tune the options of a schedule: order, style and mover, from a table to a run.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "chorale/compile.hpp"
#include "chorale/dsl/registry.hpp"
#include "chorale/schedule.hpp"
#include "chorale/tuner.hpp"
#include "tests/unit/thrown.hpp"

namespace chorale::test {
namespace {

constexpr int ranks = 2;
constexpr uint64_t m = 6, k = 4, n = 3;

int a_at(uint64_t row, uint64_t at) { return int((row * 3 + at * 2) % 5) - 2; }
int b_at(uint64_t at, uint64_t column) { return int((at + column * 7) % 3) - 1; }

/// Measures a product of gathered rows, compiled and run as a configuration says.
Measurement measured(const Plan& plan, const TuneConfig& config) {
  Measurement made{.correct = true};
  run_local(ranks, [&](World& world) {
    const uint64_t rows = m / ranks, first = uint64_t(world.rank()) * rows;
    ScheduleRun schedule(
        world, plan,
        {.params = {{"M", int64_t(m)}, {"K", int64_t(k)}, {"N", int64_t(n)}}, .mover = tuned_mover(config)});
    float* const a = static_cast<float*>(schedule.buffer("A"));
    float* const b = static_cast<float*>(schedule.buffer("B"));
    for (uint64_t at = 0; at < rows * k; ++at) a[at] = float(a_at(first + at / k, at % k));
    for (uint64_t at = 0; at < k * n; ++at) b[at] = float(b_at(at / n, at % n));
    const auto begin = std::chrono::steady_clock::now();
    schedule.run();
    schedule.synchronize();
    if (world.rank() == 0)
      made.ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    const float* const c = static_cast<const float*>(schedule.buffer("C"));
    for (uint64_t at = 0; at < m * n; ++at) {
      int expected = 0;
      for (uint64_t i = 0; i < k; ++i) expected += a_at(at / n, i) * b_at(i, at % n);
      if (c[at] != float(expected)) made.correct = false;
    }
    world.barrier();
  });
  return made;
}

dsl::Compiled compiled(const TuneConfig& config) {
  return dsl::build("ag_matmul_layout", tuned_lowering(config)).compile();
}

/// No test can predict which of the right candidates is the fastest.
TEST(TunedSchedules, OrderStyleAndMoverGoFromATableToARun) {
  TuneKey key{.kind = "ag_matmul_layout", .world = ranks, .bytes = m * k * 4, .rows = m};
  const std::vector<TuneConfig> candidates{{.mover = "ce_get", .order = "rotated", .style = "ahead"},
                                           {.mover = "plan", .order = "ring", .style = "split"},
                                           {.mover = "ce_put", .order = "linear", .style = "pool"},
                                           {.order = "ring", .style = "ahead"},
                                           {.mover = "kernel"}};
  TuneTable table;
  const std::vector<Measurement> all = tune(
      table, key, candidates,
      [](const TuneConfig& config) {
        const dsl::Compiled made = compiled(config);
        if (!made.ok()) return Measurement{false, 0, render(made.plan, made.diagnostics)};
        return measured(made.plan, config);
      },
      std::chrono::seconds(60));
  for (size_t candidate = 0; candidate < 3; ++candidate)
    EXPECT_TRUE(all[candidate].correct) << candidate << ": " << all[candidate].why;
  EXPECT_FALSE(all[3].correct) << "what a peer has to know first is not said around a ring";
  EXPECT_FALSE(all[4].correct);

  key.bytes *= 2;
  const TuneTable::Choice choice = TuneTable::parse(table.text()).lookup(key);
  EXPECT_EQ(choice.found, TuneTable::Found::smaller);
  const auto chosen = std::find(candidates.begin(), candidates.begin() + 3, choice.config);
  ASSERT_NE(chosen, candidates.begin() + 3);
  const dsl::Compiled made = compiled(choice.config);
  const std::map<std::string, std::string> settings(made.plan.extension.schedule->made_with.begin(),
                                                    made.plan.extension.schedule->made_with.end());
  EXPECT_EQ(settings.at("order"), chosen->order);
  EXPECT_EQ(settings.at("style"), chosen->style);
  EXPECT_TRUE(measured(made.plan, choice.config).correct);
}

TEST(TunedSchedules, AMoverThatIsNoneIsRefused) {
  EXPECT_EQ(tuned_mover({}), schedule::Mover::ce_put);
  EXPECT_EQ(tuned_mover({}, schedule::Mover::ce_get), schedule::Mover::ce_get);
  EXPECT_EQ(tuned_mover({.mover = "plan"}), schedule::Mover::plan);
  EXPECT_EQ(thrown([] { tuned_mover({.mover = "kernel"}); }),
            "usage: a configuration has the mover 'kernel', expected one of automatic, ce_put, ce_get, plan");
  EXPECT_EQ(thrown([] { tuned_mover({.mover = "ce_gte"}); }),
            "usage: a configuration has the mover 'ce_gte', expected one of automatic, ce_put, ce_get, plan, "
            "did you mean 'ce_get'?");
}

}  // namespace
}  // namespace chorale::test
