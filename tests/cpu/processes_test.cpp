/// \file
/// Checks that ranks that are processes give the same results as ranks that are threads.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/cpu/harness.hpp"
#include "tests/forked.hpp"

namespace chorale::test {
namespace {

/// Runs `f` on ranks that are processes, which exit with its value. Returns their wait statuses.
template <class F>
std::vector<int> processes(int ranks, JoinOptions options, const F& f) {
  static std::atomic<int> turn{0};
  const std::string name = "shm://chorale-test-" + std::to_string(getpid()) + "-" + std::to_string(turn++);
  return forked(ranks, [&](int rank) {
    World world = World::join(name, rank, ranks, options);
    return f(world);
  });
}

TEST(Processes, give_the_results_of_threads) {
  for (const char* name : {"allreduce_ring_4", "allreduce_one_shot_4", "allreduce_two_shot_4",
                           "allreduce_all_pairs_4", "allgather_direct_4", "allgather_ring_4",
                           "alltoall_direct_4", "reducescatter_direct_4", "broadcast_direct_4"}) {
    const Plan plan = load((source_dir() / "plans/shipped" / (std::string(name) + ".json")).string());
    const std::vector<int> codes = processes(4, {}, [&](World& world) {
      Executor executor(world);
      for (const Where where : {Where::apart, Where::in_place, Where::allocated}) {
        for (const uint64_t bytes : some_sizes(plan, {1, 5, 1024, 9001})) {
          const std::string wrong = run_rank(world, executor, plan, {.bytes = bytes, .where = where});
          if (!wrong.empty()) {
            fprintf(stderr, "%s, %d: %s\n", name, int(where), wrong.c_str());
            return 1;
          }
        }
      }
      return 0;
    });
    EXPECT_EQ(codes, std::vector<int>(4, 0)) << name;
  }
}

TEST(Processes, mscclpp_plans_in_place) {
  const std::filesystem::path folder = source_dir() / "../shared/mscclpp-plans";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  for (const char* name :
       {"single_node-allreduce__n4", "single_node-allgather-scalable__n4",
        "single_node-alltoall-alltoall__n4", "single_node-allreduce_pkt__n4",
        "single_node-allgather_nvls_zero_copy__n4-i2", "single_node-allreduce_pipeline__n2"}) {
    const Plan plan = load((folder / (std::string(name) + ".json")).string());
    const int ranks = int(plan.ranks());
    const std::vector<int> codes = processes(ranks, {}, [&](World& world) {
      Executor executor(world);
      for (const Where where : {Where::apart, Where::in_place, Where::allocated}) {
        const std::string wrong =
            run_rank(world, executor, plan, {.bytes = some_sizes(plan, {1028})[0], .where = where});
        if (!wrong.empty()) {
          fprintf(stderr, "%s, %d: %s\n", name, int(where), wrong.c_str());
          return 1;
        }
      }
      return 0;
    });
    EXPECT_EQ(codes, std::vector<int>(size_t(ranks), 0)) << name;
  }
}

}  // namespace
}  // namespace chorale::test
