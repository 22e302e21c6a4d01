/// \file
/// Host schedules on CUDA, for tests with GPUs and without.
#pragma once

#include <string>
#include <vector>

#include "chorale/schedule.hpp"
#include "tests/cuda/ranks.hpp"
#include "tests/unit/schedule_run/schedules.hpp"

namespace chorale::test {

inline Config on_cuda() {
  Config config = Config::load();
  config.backend = std::string("cuda");
  return config;
}

inline std::vector<Form> forms() {
  std::vector<Form> all;
  for (const Order order : {Order::linear, Order::rotated, Order::ring}) {
    all.push_back({order, Style::two, 1});
    all.push_back({order, Style::pool, 4});
  }
  return all;
}

inline int32_t value_at(int run, int rank, uint64_t index) {
  return int32_t((uint64_t(run) * 1000003 + uint64_t(rank) * 8191 + index) * 2654435761u);
}

inline void expect_good(const std::vector<std::string>& said) {
  for (size_t rank = 0; rank < said.size(); ++rank) EXPECT_EQ(said[rank], "good") << "rank " << rank;
}

/// Of two ranks: rank 1 binds and never runs. Rank 0's wait ends at its deadline and says for what it was.
inline std::string wait_for_who_never_runs(World& world, host::Mover mover, const std::string& what) {
  Config config = on_cuda();
  config.timeout = std::chrono::nanoseconds(std::chrono::milliseconds(500));
  ScheduleArguments arguments{.params = {{"n", 1000}}, .mover = mover};
  arguments.functions["produce"] = arguments.functions["consume"] = [](const HostCall&) {};
  ScheduleRun schedule(world, allgather_p2p({Order::rotated, Style::two, 1}), arguments, config);
  if (world.rank() == 1) {
    // It hears of it in a collective.
    try {
      world.barrier();
    } catch (const RunError&) {
      return std::string("good");
    }
    return std::string("rank 1 heard nothing");
  }
  try {
    schedule.run();
    schedule.synchronize();
  } catch (const RunError& error) {
    const std::string text = error.what();
    const bool named = error.reason == RunError::Reason::timed_out &&
                       text.find("rank 0, lane comm, i = 1: " + what) != std::string::npos &&
                       text.find("from rank 1") != std::string::npos;
    return named ? std::string("good") : text;
  }
  return std::string("nothing was thrown");
}

}  // namespace chorale::test
