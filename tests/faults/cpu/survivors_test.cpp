/// \file
/// Kills one of eight processes that run all-reduces, and then another one. The others must continue.

#include <signal.h>
#include <unistd.h>

#include <chorale/executor.hpp>
#include <chorale/make_plan.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "tests/unit/world/processes.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Returns an input of a rank, by its original number. It is a whole number, so that sums are exact.
float value(int began_as, int run, size_t at) { return float(began_as * 1000 + run * 7 + int(at % 13)); }

/// Runs all-reduces until they fail. Returns "peer_lost", or the unexpected error.
std::string runs(World& world, Executor& executor, const Plan& plan, const std::vector<int>& began_as) {
  std::vector<float> in(1000), out(in.size());
  for (int run = 0;; ++run) {
    for (size_t at = 0; at < in.size(); ++at) in[at] = value(began_as[size_t(world.rank())], run, at);
    try {
      executor.execute(plan, {.in = in.data(), .out = out.data(), .bytes = in.size() * sizeof(float)});
    } catch (const RunError& error) {
      return error.reason == RunError::Reason::peer_lost ? "peer_lost" : error.what();
    }
    for (size_t at = 0; at < out.size(); ++at) {
      float wanted = 0;
      for (const int rank : began_as) wanted += value(rank, run, at);
      if (out[at] != wanted) return "wrong sums";
    }
  }
}

/// Kills this process at a random time while collectives run.
std::jthread death_of(int rank) {
  return std::jthread([rank] {
    std::this_thread::sleep_for(100ms + std::chrono::microseconds(rank * 337 + getpid() % 1000));
    ::kill(getpid(), SIGKILL);
  });
}

std::string go_on(World world, const char* algorithm) {
  std::vector<int> began_as(size_t(world.ranks()));
  for (int rank = 0; rank < world.ranks(); ++rank) began_as[size_t(rank)] = rank;
  Config config = Config::load();
  config.backend = "cpu";
  std::string made;
  for (const int dies : {3, 0, -1}) {
    const auto start = Clock::now();
    const Plan plan = make_plan(algorithm, world.ranks());
    const std::chrono::duration<double, std::milli> time = Clock::now() - start;
    if (world.rank() == 1) {
      std::printf("    %s for %d ranks: made in %.1f ms\n", algorithm, world.ranks(), time.count());
      std::fflush(stdout);
    }
    std::optional<Executor> executor(std::in_place, world, config);
    std::jthread death;
    if (began_as[size_t(world.rank())] == dies) death = death_of(dies);
    std::jthread end;
    if (dies < 0 && world.rank() == 0) {
      end = std::jthread([&world] {
        std::this_thread::sleep_for(50ms);
        world.abort("that is all");
      });
    }
    const std::string said = runs(world, *executor, plan, began_as);
    if (dies < 0) return said == "wrong sums" ? said : "good";
    if (said != "peer_lost") return said;
    World next = world.survivors();
    std::vector<int> left;
    for (const int former : next.former_ranks()) left.push_back(began_as.at(size_t(former)));
    began_as = std::move(left);
    executor.reset();  // it uses the handle of the old world
    world = std::move(next);
  }
  return "not reached";
}

TEST(EightProcesses, GoOnWithSevenAndThenSix) {
  for (const char* algorithm : {"allreduce_all_pairs", "allreduce_one_shot", "allreduce_ring"}) {
    const std::string address = fresh_address();
    Processes ranks(8, [&](int rank) { return go_on(World::join(address, rank, 8), algorithm); });
    for (const int rank : {1, 2, 4, 5, 6, 7}) EXPECT_EQ(ranks.said(rank), "good") << algorithm << " " << rank;
    EXPECT_EQ(leftovers(), std::vector<std::string>());
  }
}

}  // namespace
}  // namespace chorale::test
