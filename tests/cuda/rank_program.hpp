/// \file
/// Implements the main program of cuda_tiles and cuda_exchange: NAME RANKS [--quick] [--share-gpus
/// [--processes]].
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chorale/world.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/share_gpus.hpp"

namespace chorale::test {

/// Tests one rank.
/// \param quick  true: short enough for compute-sanitizer
/// \return whether everything is right
using RankProgram = std::function<bool(World& world, bool quick)>;

/// Runs one rank in this process or, with `threads`, all ranks as threads.
/// \return the exit status of the process
inline int run_ranks(const std::string& name, int rank, int ranks, bool quick, bool threads,
                     const RankProgram& program) {
  const std::chrono::seconds timeout(quick ? 100 : 10);
  std::atomic<bool> good{true};
  try {
    const auto run = [&](World& world) {
      if (!program(world, quick)) good = false;
    };
    if (threads) {
      LocalOptions options;
      options.timeout = timeout;
      run_local(ranks, run, options);
    } else {
      JoinOptions options;
      options.timeout = timeout;
      World world = World::join("shm://" + name + "." + std::to_string(getppid()), rank, ranks, options);
      run(world);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 3;
  }
  return good ? 0 : 1;
}

/// Forks one process per rank. With --share-gpus several ranks may share a GPU. They are then threads of one
/// process or, with --processes, processes that take turns on the GPU.
/// \return the exit status: 0 if everything is right
inline int rank_program(int argc, char** argv, const std::string& name, const RankProgram& program) {
  // A time limit may end this process from outside, and its output until then must be visible.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto says = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const int ranks = words.empty() ? 2 : std::atoi(words[0].c_str());
  const bool quick = says("--quick"), threads = says("--share-gpus") && !says("--processes");
  std::vector<pid_t> children;
  for (int rank = 0; rank < (threads ? 1 : ranks); ++rank) {
    const pid_t child = fork();  // before CUDA is used, because CUDA does not survive a fork
    if (child == 0) {
      if (threads) let_threads_share_gpus();
      const int status = run_ranks(name, rank, ranks, quick, threads, program);
      std::fflush(stdout);
      std::_Exit(status);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace chorale::test
