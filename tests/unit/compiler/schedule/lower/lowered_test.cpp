// These tests lower layouts in every possible way, and run them on the CPU. The results must be what the
// layout means.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "chorale/json.hpp"
#include "chorale/schedule.hpp"
#include "chorale/schedule/concrete.hpp"
#include "chorale/world.hpp"
#include "layouts.hpp"
#include "meaning.hpp"

namespace chorale::test {
namespace {

using schedule::Mover;

constexpr int most_runs = 10, few_runs = 3;

std::string text(const Lowering& lowering) {
  return fmt::format("{} {} {} {}",
                     lowering.order ? schedule::order_names[size_t(*lowering.order)] : "automatic",
                     schedule::form_names[size_t(lowering.form)],
                     schedule::stream_style_names[size_t(lowering.style)],
                     schedule::reshard_names[size_t(lowering.reshard)]) +
         (lowering.via == Mover::automatic ? ""
                                           : " " + std::string(schedule::mover_names[size_t(lowering.via)]));
}

std::vector<Lowering> every_lowering() {
  std::vector<Lowering> all;
  for (const std::optional<Order> order : {std::optional<Order>(), std::optional(Order::linear),
                                           std::optional(Order::rotated), std::optional(Order::ring)})
    for (const Form form : {Form::p2p, Form::broadcast, Form::reduce, Form::collective})
      for (const StreamStyle style :
           {StreamStyle::split, StreamStyle::ahead, StreamStyle::pool, StreamStyle::chained})
        for (const Reshard reshard : {Reshard::before, Reshard::after}) {
          Lowering one{.order = order, .form = form, .style = style, .reshard = reshard};
          all.push_back(one);
          if (style != StreamStyle::ahead) continue;
          one.via = Mover::ce_get;  // so that the other end is ready first
          all.push_back(one);
        }
  return all;
}

/// Holds a schedule, which runs once even if several lowerings produce it.
struct Lowered {
  Plan plan;
  std::string how;
  bool ahead = false;  ///< true: it signals before the first turn, which only copy engines can do
};

/// Returns all different schedules of a layout, checked for `ranks`.
std::vector<Lowered> lowered(const Layout& layout, uint32_t ranks, int64_t pool) {
  std::vector<Lowered> all;
  std::vector<std::string> seen;
  size_t refused = 0;
  for (const Lowering& lowering : every_lowering()) {
    Schedule schedule({.name = "it", .ranks = {ranks}, .pool = pool, .lowering = lowering});
    layout.write(schedule);
    const Program program = schedule;
    if (!program.diagnostics().empty()) {  // its form lacks this order: see refused_test.cpp
      ++refused;
      continue;
    }
    // The compiler does not change a schedule, so equal recordings have equal checks.
    Plan plain = program.recorded();
    schedule::Schedule same = *plain.extension.schedule;
    same.made_with.clear();
    plain.extension.schedule = std::make_shared<schedule::Schedule>(same);
    const std::string body = write(plain);
    if (std::find(seen.begin(), seen.end(), body) != seen.end()) continue;
    seen.push_back(body);
    Compiled compiled = program.compile();
    EXPECT_EQ(render(compiled.plan, compiled.diagnostics), "") << layout.name << " " << text(lowering);
    if (!compiled.ok()) continue;
    all.push_back({std::move(compiled.plan), text(lowering), lowering.style == StreamStyle::ahead});
  }
  EXPECT_LT(refused, every_lowering().size() * 3 / 4) << layout.name;
  return all;
}

/// Runs `runs` times on one binding, with new data each time.
/// \return the error; "" if there is none
std::string run(World& world, const Plan& plan, Mover mover, int runs = most_runs) {
  const schedule::Schedule& schedule = *plan.extension.schedule;
  Meaning meaning(schedule, {{"ranks", world.ranks()}, {"rank", 0}});
  const uint64_t rank = uint64_t(world.rank());
  ScheduleRun bound(world, plan, {.mover = mover, .check = false});
  std::string wrong;
  for (int run = 0; run < runs && wrong.empty(); ++run) {
    meaning.run(run);
    for (size_t k = 0; k < schedule.tensors.size(); ++k) {
      if (schedule.tensors[k].role != schedule::Role::in) continue;
      const std::vector<float> in = meaning.of_rank(k, rank);
      std::copy(in.begin(), in.end(), static_cast<float*>(bound.buffer(schedule.tensors[k].name)));
    }
    bound.run();
    bound.synchronize();
    for (size_t k = 0; k < schedule.tensors.size(); ++k) {
      if (schedule.tensors[k].role != schedule::Role::out) continue;
      const std::vector<float> expected = meaning.of_rank(k, rank);
      const float* const got = static_cast<const float*>(bound.buffer(schedule.tensors[k].name));
      for (size_t at = 0; at < expected.size() && wrong.empty(); ++at)
        if (got[at] != expected[at])
          wrong = fmt::format("run {}, rank {}: element {} of {} is {}, not {}", run, rank, at,
                              schedule.tensors[k].name, got[at], expected[at]);
    }
  }
  world.barrier();  // peers may still be in the previous run
  return wrong;
}

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Ranks, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

/// Does the same as run() by launches of plans. A schedule is refused if its groups exchange with ranks
/// outside the group.
/// \param ran  set to whether the schedule was accepted
std::string run_by_plans(World& world, const Plan& plan, bool& ran, int runs) {
  try {
    ran = true;
    return run(world, plan, Mover::plan, runs);
  } catch (const UsageError& error) {
    ran = false;
    return std::string(error.what()).find("via 'plan'") == std::string::npos ? error.what() : "";
  }
}

/// Returns whether a layout makes all its runs by plans, too. Gathers, alone or with compute, do.
bool makes_all_runs(const Layout& layout) {
  const std::string name = layout.name;
  return name == "allgather" || name == "matmul of rows over ranks";
}

/// The runs use copy engines, and plans if the groups fit.
TEST_P(Ranks, EveryLoweringGivesWhatTheLayoutMeans) {
  size_t tried = 0, by_plans = 0;
  for (const Layout& layout : layouts()) {
    const std::vector<Lowered> all = lowered(layout, uint32_t(GetParam()), 3);
    ASSERT_FALSE(all.empty()) << layout.name;
    // More ranks run the code of two, and take minutes on few cores. A part of the lowerings is enough for
    // them.
    const int ranks = GetParam();
    const size_t step = ranks > 4 ? 19 : ranks > 2 ? 4 : 1;
    const int runs = makes_all_runs(layout) && ranks <= 4 ? most_runs : few_runs;
    for (size_t at = 0; at < all.size(); at += step) {
      const Lowered& one = all[at];
      if (!one.ahead) ++tried;
      run_local(GetParam(), [&](World& world) {
        for (const Mover mover : {Mover::ce_put, Mover::ce_get})
          EXPECT_EQ(run(world, one.plan, mover), "")
              << layout.name << ": " << one.how << " " << schedule::mover_names[size_t(mover)];
        if (one.ahead) return;
        bool ran = false;
        EXPECT_EQ(run_by_plans(world, one.plan, ran, runs), "") << layout.name << ": " << one.how << " plan";
        if (ran && world.rank() == 0) ++by_plans;
      });
    }
  }
  EXPECT_GT(by_plans, tried / 4);
}

TEST(Layouts, AnyNumberOfStreams) {
  for (const int64_t pool : {1, 2, 4, 8}) {
    for (const Lowered& one : lowered(layouts()[2], 4, pool))
      run_local(4, [&](World& world) {
        EXPECT_EQ(run(world, one.plan, Mover::ce_put), "") << pool << " " << one.how;
      });
  }
}

TEST(Layouts, EveryOrderOfFibersGivesTheSame) {
  for (const Layout& layout : layouts()) {
    for (const Lowered& one : lowered(layout, 3, 2)) {
      const uint64_t seed = std::hash<std::string>()(one.how);
      run_local(3,
                [&](World& world) {
                  EXPECT_EQ(run(world, one.plan, Mover::ce_put), "") << layout.name << ": " << one.how;
                },
                {.seed = seed});
    }
  }
}

}  // namespace
}  // namespace chorale::test
