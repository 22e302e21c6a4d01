// In this application ranks are processes, one of which is killed during an all-reduce. The others continue
// in a smaller world, with a plan for their number.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chorale/make_plan.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "memory.hpp"

/// Returns the number of wrong elements.
size_t run(chorale::World world, const chorale::Config& config) {
  const bool dies = world.rank() == 1;
  auto plan = chorale::make_plan("allreduce_all_pairs", world.ranks());
  auto executor = std::make_unique<chorale::Executor>(world, config);
  size_t wrong = 0;
  try {
    for (int round = 0;; ++round) {
      if (dies && round == 2) raise(SIGKILL);
      wrong += wrong_sums(world, *executor, plan);
    }
  } catch (const chorale::RunError& error) {
    if (error.reason != chorale::RunError::Reason::peer_lost) throw;
    std::fprintf(stderr, "rank %d: %s\n", world.rank(), error.what());
  }
  executor.reset();  // it refers to `world`
  world = world.survivors();
  const auto start = std::chrono::steady_clock::now();
  plan = chorale::make_plan("allreduce_all_pairs", world.ranks());
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  executor = std::make_unique<chorale::Executor>(world, config);
  wrong += wrong_sums(world, *executor, plan);
  world.barrier();
  if (world.rank() == 0) {
    std::printf("%d ranks go on, with a plan made in %.1f ms, %zu wrong elements\n", world.ranks(),
                time.count(), wrong);
  }
  return wrong;
}

int main() {
  constexpr int ranks = 8;
  chorale::Config config = chorale::Config::load();
  config.backend = "cpu";
  const std::string address = "shm://survivors-" + std::to_string(getpid());
  pid_t children[ranks];
  for (int rank = 0; rank < ranks; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0) continue;
    try {
      return run(chorale::World::join(address, rank, ranks, config.join()), config) != 0;
    } catch (const std::exception& error) {
      return std::fprintf(stderr, "rank %d: %s\n", rank, error.what()), 1;
    }
  }
  int bad = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    waitpid(children[rank], &status, 0);
    bad += rank == 1 ? !WIFSIGNALED(status) : !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  return bad != 0;
}
