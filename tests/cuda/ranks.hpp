/// \file
/// Runs ranks with a GPU, as processes or as threads, for tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "chorale/world.hpp"
#include "executor/cuda/device/error.hpp"
#include "tests/unit/world/processes.hpp"
#include "tests/unit/world/ranks.hpp"

namespace chorale::test {

/// Returns the number of GPUs of this machine. A separate process counts them, because CUDA does not survive
/// a fork.
inline int gpus() {
  static const int count = [] {
    Processes asking(1, [](int) {
      int found = 0;
      return std::to_string(cudaGetDeviceCount(&found) == cudaSuccess ? found : 0);
    });
    return std::stoi(asking.said(0));
  }();
  return count;
}

/// True if --share-gpus was given (share_gpus.hpp). Set it before ranks are started.
inline bool share_gpus = false;

/// Return whether there are GPUs for this many ranks, and whether several ranks then share one GPU.
inline bool gpus_suffice(int ranks) { return gpus() >= (share_gpus ? 1 : ranks); }
inline bool gpus_are_shared(int ranks) { return gpus() < ranks; }

/// Runs one rank of a test. Returns "good" or the error.
using RankBody = std::function<std::string(World&)>;

inline std::string run_on_gpu(World& world, const RankBody& body) {
  cuda::check(cudaSetDevice(world.rank() % gpus()), "cudaSetDevice");
  return body(world);
}

/// Runs each rank as a process and returns the results. Ranks share GPUs if there are fewer GPUs than ranks.
inline std::vector<std::string> on_processes(int ranks, const RankBody& body) {
  gpus();  // before the fork
  const std::string address = fresh_address();
  Processes all(ranks, [&](int rank) {
    World world = World::join(address, rank, ranks, {.timeout = std::chrono::seconds(30)});
    return run_on_gpu(world, body);
  });
  std::vector<std::string> said;
  for (int rank = 0; rank < ranks; ++rank) said.push_back(all.said(rank));
  return said;
}

/// Runs the ranks as threads of one separate process, and returns the results.
inline std::vector<std::string> on_threads(int ranks, const RankBody& body) {
  gpus();
  Processes process(1, [&](int) {
    std::vector<std::string> said(ranks);
    run_local(ranks, [&](World& world) { said[world.rank()] = run_on_gpu(world, body); });
    for (const std::string& one : said) {
      if (one != "good") return one;
    }
    return std::string("good");
  });
  return std::vector<std::string>(ranks, process.said(0));
}

/// Runs bodies on ranks that are processes, or threads of one process. All ranks must say "good".
class OnRanks : public testing::TestWithParam<Ranks> {
 protected:
  static std::vector<std::string> run(const RankBody& body, int ranks = 2) {
    return GetParam() == Ranks::processes ? on_processes(ranks, body) : on_threads(ranks, body);
  }
  static void expect_good(const RankBody& body, int ranks = 2) {
    EXPECT_EQ(run(body, ranks), std::vector<std::string>(size_t(ranks), "good"));
  }
};

}  // namespace chorale::test

/// Makes the cases of a suite of OnRanks, for both kinds of ranks.
#define CHORALE_FOR_ALL_RANKS(prefix, suite) \
  INSTANTIATE_TEST_SUITE_P( \
      prefix, suite, testing::Values(::chorale::test::Ranks::processes, ::chorale::test::Ranks::threads), \
      [](const auto& info) -> std::string { \
        return info.param == ::chorale::test::Ranks::processes ? "Processes" : "Threads"; \
      })

/// Skips the case on a machine with fewer GPUs, unless ranks may share them. The message has both numbers.
#define CHORALE_NEEDS_GPUS(count) \
  if (!::chorale::test::gpus_suffice(count)) { \
    GTEST_SKIP() << "GPUs needed: " << (count) << ", found: " << ::chorale::test::gpus(); \
  }
