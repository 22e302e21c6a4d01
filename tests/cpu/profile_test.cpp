/// \file
/// Tests profiles of launches that ran, for properties that hold whatever the times were. tests/unit/profile
/// has made-up times.

#include "chorale/profile.hpp"

#include <algorithm>
#include <optional>

#include "tests/cpu/harness.hpp"

namespace chorale::test {
namespace {

/// Runs `plan` three times and returns the profile of the last run.
Profile profile_of_run(const Plan& plan, uint64_t bytes, std::optional<uint64_t> seed,
                       std::vector<TraceSpan>& spans) {
  std::vector<std::vector<TraceSpan>> traces(plan.ranks());
  Config config = Config::load();
  config.trace = 1;
  LocalOptions options;
  options.seed = seed;
  run_local(
      int(plan.ranks()),
      [&](World& world) {
        Executor executor(world, config);
        EXPECT_EQ(run_rank(world, executor, plan, {.bytes = bytes}), "");
        traces[size_t(world.rank())] = executor.trace();
        world.barrier();
      },
      options);
  for (const auto& of_rank : traces) spans.insert(spans.end(), of_rank.begin(), of_rank.end());
  return profile(plan, {.bytes = bytes, .dtype = DType::i32}, spans, Clocks::one);
}

void expect_consistent(const Profile& profile, const std::vector<TraceSpan>& spans) {
  uint64_t first = ~uint64_t{0}, last = 0, total = 0;
  for (const TraceSpan& span : spans) {
    first = std::min(first, span.begin_ns);
    last = std::max(last, span.end_ns);
    total += span.end_ns - span.begin_ns;
  }
  EXPECT_EQ(profile.launch, 3u);
  EXPECT_EQ(profile.launch_ns, last - first);
  EXPECT_EQ(profile.totals.all_ns(), total);
  ASSERT_FALSE(profile.path.empty());
  uint64_t now = 0;
  for (const ProfileStretch& stretch : profile.path) {
    EXPECT_EQ(stretch.from_ns, now) << "the path has a gap";
    EXPECT_LT(stretch.from_ns, stretch.to_ns);
    EXPECT_NE(stretch.waited, ProfileStretch::Waited::unknown) << stretch.place.name;
    EXPECT_NE(stretch.waited, ProfileStretch::Waited::for_peers) << stretch.place.name;
    now = stretch.to_ns;
  }
  EXPECT_EQ(now, profile.launch_ns);
  uint64_t of_lines = 0, on_path = 0, count = 0;
  for (const ProfileLine& line : profile.lines) {
    of_lines += line.total_ns;
    on_path += line.path_ns;
    count += line.spans;
  }
  EXPECT_EQ(of_lines, total);
  EXPECT_EQ(on_path, profile.launch_ns);
  EXPECT_EQ(count, spans.size());
}

TEST(ProfileOfRuns, AccountsForAllTheTime) {
  size_t across = 0;
  for (const char* name :
       {"allgather_ring_4", "allgather_by_port_2", "allreduce_staged_4", "allreduce_two_level_4",
        "alltoall_packets_4", "allreduce_one_shot_b16_4", "broadcast_direct_4"}) {
    const Plan plan = load((source_dir() / "plans/shipped" / (std::string(name) + ".json")).string());
    for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(7)}) {
      SCOPED_TRACE(testing::Message() << name << (seed ? " in a drawn order" : ""));
      std::vector<TraceSpan> spans;
      const Profile profile = profile_of_run(plan, some_sizes(plan, {4096})[0], seed, spans);
      expect_consistent(profile, spans);
      for (size_t at = 1; at < profile.path.size(); ++at) {
        const ProfileStretch &before = profile.path[at - 1], &next = profile.path[at];
        if (before.place.kind == ProfilePlace::Kind::operation) across += before.rank != next.rank;
      }
    }
  }
  EXPECT_GT(across, 0u) << "no path ever left its rank";
}

/// GPUs have a clock each: a rank's own spans count, however its clock relates to the others.
TEST(ProfileOfRuns, WithAClockOfEachRankStaysOnOne) {
  const Plan plan = load((source_dir() / "plans/shipped/allreduce_two_level_4.json").string());
  const uint64_t bytes = some_sizes(plan, {4096})[0];
  std::vector<TraceSpan> spans;
  profile_of_run(plan, bytes, {}, spans);
  for (TraceSpan& span : spans) {
    const uint64_t apart = 1000000000 * uint64_t(span.rank);
    span.begin_ns += apart;
    span.end_ns += apart;
  }
  const Profile found = profile(plan, {.bytes = bytes, .dtype = DType::i32}, spans, Clocks::per_rank);
  EXPECT_LT(found.launch_ns, 1000000000u);
  uint64_t now = 0, waits = 0;
  for (const ProfileStretch& stretch : found.path) {
    EXPECT_EQ(stretch.rank, found.rank);
    EXPECT_EQ(stretch.from_ns, now);
    now = stretch.to_ns;
    if (stretch.waited != ProfileStretch::Waited::for_peers) continue;
    ++waits;
    for (const uint32_t peer : stretch.peers) EXPECT_NE(peer, found.rank);
    EXPECT_TRUE(stretch.peers_line);
  }
  EXPECT_EQ(now, found.launch_ns);
  EXPECT_GT(waits, 0u);
}

/// Two messages of one plan have the same launch numbers.
TEST(ProfileOfRuns, IsOfOneMessage) {
  const Plan plan = load((source_dir() / "plans/shipped/allgather_ring_2.json").string());
  const uint64_t sizes[] = {1024, 4096};
  std::vector<TraceSpan> spans;
  Config config = Config::load();
  config.trace = 1;
  std::vector<std::vector<TraceSpan>> traces(2);
  run_local(2, [&](World& world) {
    Executor executor(world, config);
    for (const uint64_t bytes : sizes) EXPECT_EQ(run_rank(world, executor, plan, {.bytes = bytes}), "");
    traces[size_t(world.rank())] = executor.trace();
    world.barrier();
  });
  for (const auto& of_rank : traces) spans.insert(spans.end(), of_rank.begin(), of_rank.end());
  for (const uint64_t bytes : sizes) {
    std::vector<TraceSpan> ours;
    for (const TraceSpan& span : spans) {
      if (span.bytes == bytes) ours.push_back(span);
    }
    ASSERT_EQ(ours.size() * 2, spans.size());
    expect_consistent(profile(plan, {.bytes = bytes, .dtype = DType::i32}, spans, Clocks::one), ours);
  }
}

}  // namespace
}  // namespace chorale::test
