/// \file
/// Makes a scheduler without a World, with the minimum that a test needs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../../executor/fibers/scheduler.hpp"

namespace chorale::test {

struct SchedulerUnderTest {
  explicit SchedulerUnderTest(int ranks, unsigned workers = 2, std::optional<uint64_t> seed = {},
                              std::chrono::nanoseconds timeout = std::chrono::nanoseconds(0))
      : ranks(ranks),
        made(fibers::make_scheduler(
            {.ranks = ranks,
             .complete = true,
             .workers = workers,
             .seed = seed,
             .timeout = timeout,
             .abort = &word,
             .raise = [this](Stop stop, int rank, const std::string& text) { raise(stop, rank, text); },
             .ranks_in_collective = {},
             .idle_check = {}})) {}

  void raise(Stop stop, int rank, const std::string& text) {
    std::lock_guard guard(mutex);
    if (raise_stop(&word, stop, uint32_t(rank))) why = text;
  }

  /// Runs body(rank) on one thread per rank, or as fibers with a seed. Then the rank has ended.
  void run(const std::function<void(int)>& body) {
    if (scheduler.seeded()) {
      std::vector<std::function<void()>> bodies;
      for (int rank = 0; rank < ranks; ++rank) bodies.push_back([&body, rank] { body(rank); });
      scheduler.run_seeded(std::move(bodies));
      return;
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        body(rank);
        scheduler.end_rank(rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  int ranks;
  AbortWord word;
  std::mutex mutex;
  std::string why;
  std::unique_ptr<fibers::Scheduler> made;
  fibers::Scheduler& scheduler = *made;
};

/// Parks until *word >= target. Returns false if the world has stopped.
inline bool await(fibers::BlockHost& host, const uint64_t* word, uint64_t target) {
  struct State {
    const uint64_t* word;
    uint64_t target;
  } state{word, target};
  const auto ready = [](const void* of) {
    const State* wanted = static_cast<const State*>(of);
    return load_acquire(wanted->word) >= wanted->target;
  };
  while (!ready(&state)) {
    if (host.stopped() != Stop::none) return false;
    host.park(ready, &state);
  }
  return true;
}

}  // namespace chorale::test
