#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "../../../executor/fibers/sanitizers.hpp"
#include "../scarce_memory.hpp"
#include "chorale/error.hpp"
#include "scheduler_under_test.hpp"

namespace chorale::test {
namespace {

#if defined(CHORALE_TSAN)
constexpr int many_ranks = 32;  // the sanitizer needs megabytes per fiber
#else
constexpr int many_ranks = 256;
#endif

using fibers::BlockHost;
using fibers::LaunchResult;

/// Every block of every rank passes a token to the next, `laps` times round.
void ring(SchedulerUnderTest& under_test, int blocks, int launches, uint64_t laps) {
  const int ranks = under_test.ranks, all = ranks * blocks;
  struct alignas(64) Word {
    uint64_t value = 0;
  };
  std::vector<Word> inbox(all);
  std::atomic<int> good{0};
  under_test.run([&](int rank) {
    for (int launch = 0; launch < launches; ++launch) {
      const LaunchResult result = under_test.scheduler.launch(rank, blocks, [&](int block, BlockHost& host) {
        const int me = block * ranks + rank, next = (me + 1) % all;
        for (uint64_t lap = 1; lap <= laps; ++lap) {
          const uint64_t token = uint64_t(launch) * laps + lap;
          // The first block starts a lap and ends it.
          if (me == 0) store_release(&inbox[next].value, token);
          if (!await(host, &inbox[me].value, token)) return;
          if (me != 0) store_release(&inbox[next].value, token);
        }
        good.fetch_add(1, std::memory_order_relaxed);
      });
      EXPECT_EQ(result.stop, Stop::none);
    }
  });
  EXPECT_EQ(good.load(), all * launches);
}

TEST(Scheduler, RunsEveryBlockOnce) {
  SchedulerUnderTest under_test(1);
  std::vector<int> runs(100);
  const LaunchResult result =
      under_test.scheduler.launch(0, 100, [&](int block, BlockHost&) { ++runs[block]; });
  EXPECT_EQ(result.stop, Stop::none);
  EXPECT_EQ(runs, std::vector<int>(100, 1));
}

TEST(Scheduler, RingOverRanksAndBlocks) {
  for (const unsigned workers : {1u, 2u, 5u}) {
    SchedulerUnderTest under_test(8, workers);
    ring(under_test, 4, 3, 5);
  }
}

TEST(Scheduler, RingFromSeeds) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SchedulerUnderTest under_test(4, 0, seed);
    ring(under_test, 3, 3, 2);
  }
}

TEST(Scheduler, ThousandsOfBlocksOnTwoWorkers) {
  SchedulerUnderTest under_test(many_ranks);
  ring(under_test, 8, 2, 1);
}

TEST(Scheduler, LaunchesBackToBack) {
  SchedulerUnderTest under_test(8);
  ring(under_test, 1, 200, 1);
}

/// Rank 0 waits for a word that no rank writes; the others end, or wait for it too.
void hang(SchedulerUnderTest& under_test, std::vector<LaunchResult>& results) {
  results.resize(under_test.ranks);
  static const uint64_t never = 0;
  under_test.run([&](int rank) {
    results[rank] = under_test.scheduler.launch(rank, 2, [&](int block, BlockHost& host) {
      if (rank == 2) return;
      host.set_waiting(
          {.what = "wait", .op_index = 7, .expected = 5, .word = &never, .peer = (rank + 1) % 4});
      if (block == 1) await(host, &never, 5);
    });
  });
}

void expect_hang_found(SchedulerUnderTest& under_test) {
  std::vector<LaunchResult> results;
  hang(under_test, results);
  EXPECT_EQ(Stop(under_test.word.stop), Stop::deadlock) << under_test.why;
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(results[rank].stop, Stop::deadlock);
    ASSERT_EQ(results[rank].stuck.size(), 3u);
    EXPECT_EQ(results[rank].stuck[0].rank, 0);
    EXPECT_EQ(results[rank].stuck[1].rank, 1);
    EXPECT_EQ(results[rank].stuck[2].rank, 3);
    const fibers::Stuck& first = results[rank].stuck[0];
    EXPECT_EQ(first.block, 1);
    EXPECT_TRUE(first.parked);
    EXPECT_STREQ(first.waiting.what, "wait");
    EXPECT_EQ(first.waiting.op_index, 7u);
    EXPECT_EQ(first.waiting.peer, 1);
    EXPECT_EQ(first.seen, 0u);
  }
}

TEST(Scheduler, DeadlockIsFoundWithoutATimeout) {
  for (int times = 0; times < 20; ++times) {
    SchedulerUnderTest under_test(4);
    expect_hang_found(under_test);
  }
}

TEST(Scheduler, DeadlockIsFoundFromSeeds) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SchedulerUnderTest under_test(4, 0, seed);
    expect_hang_found(under_test);
  }
}

TEST(Scheduler, NoDeadlockWhileARankHasNotLaunched) {
  SchedulerUnderTest under_test(2);
  uint64_t word = 0;
  under_test.run([&](int rank) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const LaunchResult result = under_test.scheduler.launch(rank, 1, [&](int, BlockHost& host) {
      if (rank == 1) store_release(&word, uint64_t{1});
      EXPECT_TRUE(await(host, &word, 1));
    });
    EXPECT_EQ(result.stop, Stop::none);
  });
}

TEST(Scheduler, NoDeadlockWhileAnAgentIsBusy) {
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(3)}) {
    SchedulerUnderTest under_test(2, 2, seed);
    uint64_t word = 0;
    under_test.scheduler.busy(+1);
    std::thread agent([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      store_release(&word, uint64_t{1});
      under_test.scheduler.busy(-1);
    });
    under_test.run([&](int rank) {
      const LaunchResult result = under_test.scheduler.launch(
          rank, 1, [&](int, BlockHost& host) { EXPECT_TRUE(await(host, &word, 1)); });
      EXPECT_EQ(result.stop, Stop::none);
    });
    agent.join();
  }
}

TEST(Scheduler, LaunchTimesOut) {
  using namespace std::chrono_literals;
  SchedulerUnderTest under_test(2, 2, {}, 100ms);
  const uint64_t never = 0;
  std::atomic<bool> over{false};
  under_test.run([&](int rank) {
    if (rank == 1) return over.wait(false);  // has not ended: no deadlock, as far as the scheduler knows
    const LaunchResult result = under_test.scheduler.launch(
        0, 1, [&](int, BlockHost& host) { EXPECT_FALSE(await(host, &never, 1)); });
    EXPECT_EQ(result.stop, Stop::timed_out);
    EXPECT_EQ(result.stuck.size(), 1u);
    over = true;
    over.notify_one();
  });
  EXPECT_NE(under_test.why.find("rank 0 has made no progress for 0.1 s"), std::string::npos)
      << under_test.why;
}

TEST(Scheduler, AnExceptionOfABlockEndsTheLaunchAndTheOthers) {
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(3)}) {
    SchedulerUnderTest under_test(2, 2, seed);
    const uint64_t never = 0;
    std::vector<std::string> seen(2);
    under_test.run([&](int rank) {
      try {
        const LaunchResult result = under_test.scheduler.launch(rank, 2, [&](int block, BlockHost& host) {
          if (rank == 1 && block == 1) throw std::runtime_error("bad block");
          await(host, &never, 1);
        });
        seen[rank] = result.stop == Stop::aborted ? "aborted" : "?";
      } catch (const std::exception& error) {
        seen[rank] = error.what();
      }
    });
    EXPECT_EQ(seen, (std::vector<std::string>{"aborted", "bad block"}));
    EXPECT_EQ(under_test.why, "block 1 failed: bad block");
  }
}

TEST(Scheduler, ALaunchWithoutMemoryForItsBlocksEndsTheOthersAndLeavesNothing) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(3)}) {
    SchedulerUnderTest under_test(2, 2, seed);
    const uint64_t never = 0;
    std::atomic<int> runs{0};
    std::vector<std::string> seen(2);
    under_test.run([&](int rank) {
      const auto body = [&](int, BlockHost& host) {
        if (rank == 1) ++runs;
        await(host, &never, 1);
      };
      try {
        std::optional<ScarceMemory> scarce;
        if (rank == 1) scarce.emplace(64);
        const LaunchResult result = under_test.scheduler.launch(rank, rank == 1 ? 4096 : 1, body);
        seen[rank] = result.stop == Stop::aborted ? "aborted" : "?";
      } catch (const RunError& error) {
        seen[rank] = name(error.reason);
      }
    });
    EXPECT_EQ(seen, (std::vector<std::string>{"aborted", "resources"}));
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(under_test.why.find("a launch of 4096 blocks failed: no memory for a stack of"), 0u)
        << under_test.why;

    under_test.word = {};
    under_test.scheduler.rearm();
    under_test.run([&](int rank) {
      const LaunchResult result = under_test.scheduler.launch(rank, 100, [&](int, BlockHost&) { ++runs; });
      EXPECT_EQ(result.stop, Stop::none);
    });
    EXPECT_EQ(runs, 200);
  }
}

TEST(Scheduler, AbortFromAnotherThreadAtAnyTime) {
  for (int times = 0; times < 200; ++times) {
    SchedulerUnderTest under_test(4);
    std::vector<uint64_t> words(4);
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(times * 7));
      under_test.raise(Stop::aborted, 0, "test");
    });
    under_test.run([&](int rank) {
      for (uint64_t launch = 1;; ++launch) {
        const LaunchResult result = under_test.scheduler.launch(rank, 1, [&](int, BlockHost& host) {
          store_release(&words[rank], launch);
          await(host, &words[(rank + 1) % 4], launch);
        });
        if (result.stop != Stop::none) {
          EXPECT_EQ(result.stop, Stop::aborted);
          return;
        }
      }
    });
    aborter.join();
  }
}

/// Returns the order in which blocks of two launches per rank pass their steps.
std::vector<int> order(uint64_t seed) {
  SchedulerUnderTest under_test(3, 0, seed);
  std::vector<int> passed;
  under_test.run([&](int rank) {
    for (int launch = 0; launch < 2; ++launch) {
      under_test.scheduler.launch(rank, 2, [&](int block, BlockHost& host) {
        for (int step = 0; step < 5; ++step) {
          passed.push_back(rank * 100 + launch * 10 + block);
          host.step();
        }
      });
    }
  });
  return passed;
}

TEST(Scheduler, ASeedRepeatsItsOrder) {
  const std::vector<int> first = order(42);
  EXPECT_EQ(first.size(), 60u);
  for (int times = 0; times < 100; ++times) EXPECT_EQ(order(42), first);
  int different = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) different += order(seed) != first && seed != 42;
  EXPECT_EQ(different, 99);
}

TEST(Scheduler, AFiberMaySwitchInACatchBlock) {
  for (int times = 0; times < 50; ++times) {
    SchedulerUnderTest under_test(2);
    std::vector<uint64_t> words(8);
    under_test.run([&](int rank) {
      under_test.scheduler.launch(rank, 4, [&](int block, BlockHost& host) {
        const int me = rank * 4 + block;
        try {
          throw std::runtime_error("of " + std::to_string(me));
        } catch (const std::exception&) {
          store_release(&words[me], uint64_t{1});
          EXPECT_TRUE(await(host, &words[(me + 3) % 8], 1));
          try {
            throw;
          } catch (const std::exception& error) {
            EXPECT_EQ(error.what(), "of " + std::to_string(me));
          }
        }
      });
    });
  }
}

}  // namespace
}  // namespace chorale::test
