// Compares every shipped algorithm with the oracle, bit for bit.
//
// The product of ranks, sizes, element types, operations, buffers and kinds of run is too large to run in
// full. So parts of it are covered, each by five runs with new data on one binding:
//   Types       all types x all operations x small sizes, at one number of ranks for each algorithm
//   Sizes       all numbers of ranks x all sizes; types, operations and alignment take turns
//   Schedules   200 seeded orders of all blocks and ranks for each algorithm at 3 and at 4 ranks, small sizes
//   Processes   ranks as processes, at 2 and 4 ranks, a small and a large size
//   Scale       256 ranks with 8 blocks each, in one process

#include "tests/cpu/matrix.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "executor/fibers/sanitizers.hpp"

namespace {

using namespace matrix;

constexpr size_t small_sizes[] = {0, 1, 15, 16, 17, 1000, 4 * 1024 + 4};
constexpr size_t large_size = 1024 * 1024 + 12;
/// The thread sanitizer takes one of so many pairs of a type and an operation, because arithmetic has no
/// threads. The number shares no divisor with those of packet forms, operations and types.
#if defined(CHORALE_TSAN)
constexpr uint64_t pairs_per_case = 7;
#else
constexpr uint64_t pairs_per_case = 1;
#endif

/// Returns the element types whose sizes divide `size`.
std::vector<DType> types_of(size_t size) {
  std::vector<DType> types;
  for (DType type : chorale::all_dtypes) {
    if (size % chorale::dtype_size(type) == 0) types.push_back(type);
  }
  return types;
}

std::vector<ReduceOp> ops_of(const Algorithm& algorithm) {
  if (!reduces(algorithm)) return {ReduceOp::sum};
  return {std::begin(chorale::all_reduce_ops), std::end(chorale::all_reduce_ops)};
}

class Matrix : public testing::TestWithParam<size_t> {
 protected:
  const Algorithm& algorithm() const { return algorithms()[GetParam()]; }

  void expect_right(const Case& of, std::optional<uint64_t> seed = {}) {
    const std::string wrong = run_threads(of, seed);
    EXPECT_EQ(wrong, "") << describe(of) << (seed ? ", seed " + std::to_string(*seed) : "");
  }
};

std::string name_of(const testing::TestParamInfo<size_t>& info) {
  const Algorithm& algorithm = algorithms()[info.param];
  return algorithm.name + (algorithm.inplace ? "_inplace" : "");
}

std::vector<size_t> positions() {
  std::vector<size_t> all(algorithms().size());
  for (size_t at = 0; at < all.size(); ++at) all[at] = at;
  return all;
}

TEST_P(Matrix, Types) {
  const std::vector<int>& ranks = algorithm().ranks;
  const Built& built = build(algorithm(), ranks[GetParam() % ranks.size()]);
  uint64_t seed = 0;
  for (size_t size : small_sizes) {
    for (DType type : types_of(size)) {
      for (ReduceOp op : ops_of(algorithm())) {
        if (++seed % pairs_per_case != 0) continue;
        expect_right({.built = &built,
                      .type = type,
                      .op = op,
                      .size = size,
                      .alias = built.inplace,
                      .packet = PacketForm(seed % 3),
                      .seed = seed});
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(Matrix, Sizes) {
  uint64_t turn = 0;
  std::vector<size_t> sizes(std::begin(small_sizes), std::end(small_sizes));
  sizes.push_back(large_size);
  for (int ranks : algorithm().ranks) {
    const Built& built = build(algorithm(), ranks);
    for (size_t size : sizes) {
      const std::vector<DType> types = types_of(size);
      const std::vector<ReduceOp> ops = ops_of(algorithm());
      ++turn;
      const DType type = types[turn % types.size()];
      // Plans of both kinds are called with one buffer and with two, in turn.
      expect_right({.built = &built,
                    .type = type,
                    .op = ops[turn / 2 % ops.size()],
                    .size = size,
                    .alias = (turn % 3 == 0) != built.inplace,
                    .shift = turn % 2 * chorale::dtype_size(type),
                    .packet = PacketForm(turn / 2 % 3),
                    .seed = turn});
      if (HasFailure()) return;
    }
  }
}

TEST_P(Matrix, Schedules) {
  constexpr size_t sizes[] = {4, 60, 400};
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const int ranks = 3 + int(seed % 2), instances = 1 + int(seed / 2 % 2);
    const Built& built = build(algorithm(), ranks, instances);
    expect_right({.built = &built,
                  .size = sizes[seed % 3],
                  .alias = (seed % 8 == 7) != built.inplace,
                  .packet = PacketForm(seed / 4 % 3),
                  .runs = 3,
                  .seed = seed},
                 seed);
    if (HasFailure()) return;
  }
}

TEST_P(Matrix, Processes) {
  static int next = 0;
  for (int ranks : {2, 4}) {
    if (algorithm().name == "allreduce_two_level" && ranks == 2) continue;
    const Built& built = build(algorithm(), ranks);
    for (size_t size : {size_t{1000}, size_t{256 * 1024 + 4}}) {
      const Case of{.built = &built, .size = size, .alias = (ranks == 4) != built.inplace, .seed = size};
      const Prepared all = prepare(of);
      const std::string address = "shm://matrix-" + std::to_string(getpid()) + "-" + std::to_string(next++);
      std::vector<pid_t> children;
      for (int rank = 0; rank < ranks; ++rank) {
        children.push_back(fork());
        ASSERT_GE(children.back(), 0);
        if (children.back() != 0) continue;
        std::string wrong;
        try {
          chorale::World world = chorale::World::join(address, rank, ranks);
          wrong = run_rank(world, of, all);
          world.barrier();
        } catch (const std::exception& error) {
          wrong = error.what();
        }
        if (!wrong.empty()) std::fprintf(stderr, "%s: %s\n", describe(of).c_str(), wrong.c_str());
        _exit(wrong.empty() ? 0 : 1);
      }
      for (pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << describe(of);
      }
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, Matrix, testing::ValuesIn(positions()), name_of);

TEST(Scale, Ranks256Blocks8) {
  const Algorithm algorithm{"allreduce_all_pairs", "allreduce"};
  const Built& built = build(algorithm, 256, 8);
  ASSERT_EQ(built.plan.gpus[0].threadblocks.size(), 8u);
  const Case of{.built = &built, .size = 256 * 8 * 16, .runs = 3};
  EXPECT_EQ(run_threads(of), "") << describe(of);
}

}  // namespace
