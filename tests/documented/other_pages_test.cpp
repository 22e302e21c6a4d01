// Runs the snippets of docs/hosts.md, simulation.md, traces.md and tuning.md on the CPU.

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "chorale/comparison.hpp"
#include "chorale/reduction_order.hpp"
#include "chorale/simulate.hpp"
#include "chorale/tuned_plans.hpp"
#include "tests/documented/pages.hpp"
#include "tests/documented/shown/hosts_headers.inc"
#include "tests/forked.hpp"
#include "tests/free_port.hpp"

namespace chorale::test {
namespace {

/// The ranks of one machine count as two hosts if the library can connect such hosts, else as one.
TEST(HostsPage, RanksOfSeveralHostsAddUp) {
  const std::string ADDRESS = free_address();
  constexpr int ranks = 8;
  const std::vector<int> ended = forked(ranks, [&](int rank) {
#ifdef CHORALE_WITH_UCX
    setenv("CHORALE_HOST", rank < 4 ? "a" : "b", 1);
    setenv("UCX_TLS", "tcp", 1);
#endif
    const std::vector<float> in = values_of(rank, 4096);
    std::vector<float> out(in.size());
    const float* const x = in.data();
    float* const y = out.data();
    const uint64_t n = in.size() * sizeof(float);
#include "tests/documented/shown/several_hosts.inc"
    const bool right = out == sums_of(ranks, in.size());
    world.barrier();
    return right ? 0 : 1;
  });
  EXPECT_EQ(ended, std::vector<int>(ranks, 0));
}

TEST(SimulationPage, APlanHasATime) {
  const Folder here;
  const Plan plan = make_plan("allreduce_all_pairs", 8);
#include "tests/documented/shown/simulate.inc"
  EXPECT_EQ(ns, chorale::simulate(plan, {.bytes = 1 << 20, .dtype = DType::bf16}, machine).ns);
  // At least seven eighths of 1 MB leave each GPU once, and one launch takes less than a millisecond.
  EXPECT_GT(ns, 1000);
  EXPECT_LT(ns, 1e6);
}

/// The last four of five launches are kept.
TEST(TracesPage, AnExecutorTraces) {
  const Plan plan = make_plan("allreduce_all_pairs", 2);
  run_local(2, [&](World& world) {
    Config config = Config::load();
    const std::vector<float> in = values_of(world.rank(), 1000);
    std::vector<float> out(in.size());
    size_t spans = 0;
    std::set<std::string_view> names;
    const auto use = [&](uint32_t rank, uint32_t, std::string_view name, const SourceLine& line,
                         uint64_t begin, uint64_t end) {
      ++spans;
      names.insert(name);
      EXPECT_EQ(int(rank), world.rank());
      EXPECT_NE(line.file.find("allreduce_all_pairs.cpp"), std::string::npos) << line.file;
      EXPECT_LE(begin, end);
    };
#define LEFT_OUT_1 \
  for (int run = 0; run < 5; ++run) \
    executor.execute(plan, {.in = in.data(), .out = out.data(), .bytes = in.size() * sizeof(float)});
#include "tests/documented/shown/trace.inc"
#undef LEFT_OUT_1
    EXPECT_EQ(out, sums_of(2, in.size()));
    std::set<uint64_t> launches;
    for (const TraceSpan& span : executor.trace()) launches.insert(span.launch);
    EXPECT_EQ(launches, (std::set<uint64_t>{2, 3, 4, 5}));
    EXPECT_EQ(spans, executor.trace().size());
    EXPECT_FALSE(names.empty());
    world.barrier();
  });
}

TEST(TopologiesPage, APlanRunsOnARing) {
  const Folder here;
  const Plan plan = make_plan("allgather_ring", 4);
  testing::internal::CaptureStdout();
#include "tests/documented/shown/topology.inc"
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "gpu0 -> gpu1 has 192 GB/s\n");
  machine.topology = {};
  EXPECT_NE(ns, chorale::simulate(plan, {.bytes = 1 << 20}, machine).ns);
}

/// The measured times are the predicted ones, except that everything takes three times as long.
TEST(TracesPage, ALaunchIsComparedWithThePrediction) {
  const Folder here;
  std::filesystem::copy_file("plans/machines/nvidia_h200.json", "my_machine.json");
  const Plan plan = make_plan("allreduce_all_pairs", 2);
  const uint64_t bytes = 1 << 16;
  std::vector<TraceSpan> spans_of_all_ranks =
      chorale::simulate(plan, {.bytes = bytes, .dtype = DType::bf16, .eager = true, .spans = true},
                        load_machine("my_machine.json"))
          .spans;
  for (TraceSpan& span : spans_of_all_ranks) span.begin_ns *= 3, span.end_ns *= 3;
  int64_t gaps = 0;
  const auto use = [&](const SourceLine& line, std::string_view name, int64_t gap_ns) {
    EXPECT_NE(line.line, 0u) << name;
    EXPECT_GE(gap_ns, 0) << name;
    gaps += gap_ns;
  };
#include "tests/documented/shown/compare.inc"
  EXPECT_GT(gaps, 0);
  EXPECT_NEAR(double(found.measured_ns), 3 * double(found.predicted_ns), 3);
}

/// Whatever the table says, sums are added up in the order of the ranks.
TEST(TuningPage, PlansInRankOrder) {
  const Folder here;
  const int ranks = 4;
  const std::string gpu = "NVIDIA H200";
  TuneTable table;
  table.set(plan_key({.ranks = ranks, .backend = "cuda", .device = gpu}, "allreduce", 4096, DType::f32),
            {.plan = "allreduce_ring"}, 1000);
#include "tests/documented/shown/rank_order.inc"
  for (const uint64_t bytes : {4096u, 1u << 22}) {
    const auto chosen = plans.choose("allreduce", bytes, DType::f32);
    EXPECT_TRUE(in_rank_order(plans.plan(chosen))) << chosen.name;
  }
}

}  // namespace
}  // namespace chorale::test
