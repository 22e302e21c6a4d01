// These tests check that the timeout applies to a wait without progress, however long a launch takes.

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>

#include "../../../executor/cpu/interpreter.hpp"
#include "../../../executor/fibers/scheduler_impl.hpp"
#include "scheduler_under_test.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using fibers::BlockHost;
using fibers::Clock;
using fibers::LaunchResult;

constexpr std::chrono::nanoseconds timeout = 400ms;
constexpr std::chrono::nanoseconds long_time = 3 * timeout;  // far longer than any single step

const std::optional<uint64_t> without_and_with_a_seed[] = {std::nullopt, 5};

/// Runs a thread that makes progress every few milliseconds, for a long time.
class Agent {
 public:
  Agent(fibers::Scheduler& scheduler, std::function<void()> often, std::function<void()> at_last)
      : thread_([&scheduler, often = std::move(often), at_last = std::move(at_last)] {
          for (const auto begun = Clock::now(); Clock::now() - begun < long_time; often())
            std::this_thread::sleep_for(5ms);
          at_last();
          scheduler.busy(-1);
        }) {
    scheduler.busy(+1);  // prevents a deadlock report, whatever the blocks do
  }
  ~Agent() { thread_.join(); }

 private:
  std::thread thread_;
};

/// Makes a word grow often, and finally reach its largest value.
struct Ticks {
  explicit Ticks(fibers::Scheduler& scheduler)
      : agent(
            scheduler, [this] { store_release(&word, ++last); },
            [this] { store_release(&word, ~uint64_t{0}); }) {}

  /// Waits for one value after the other.
  void follow(BlockHost& host) const {
    for (uint64_t seen = 0; seen != ~uint64_t{0}; seen = load_acquire(&word)) {
      if (!await(host, &word, seen + 1)) return;
    }
  }

  uint64_t word = 0, last = 0;
  Agent agent;
};

TEST(Progress, ALaunchThatMovesSteadilyOutlivesTheTimeout) {
  for (const auto& seed : without_and_with_a_seed) {
    SchedulerUnderTest under_test(1, 1, seed, timeout);
    const Ticks ticks(under_test.scheduler);
    under_test.run([&](int rank) {
      const LaunchResult result =
          under_test.scheduler.launch(rank, 1, [&](int, BlockHost& host) { ticks.follow(host); });
      EXPECT_EQ(result.stop, Stop::none) << under_test.why;
    });
  }
}

/// With a seed a block may launch, and then waits for as long as that launch takes.
TEST(Progress, ALaunchMovesWithWhatItsBlocksLaunch) {
  SchedulerUnderTest under_test(1, 1, 5, timeout);
  const Ticks ticks(under_test.scheduler);
  under_test.run([&](int) {
    const LaunchResult result = under_test.scheduler.launch(0, 1, [&](int, BlockHost&) {
      under_test.scheduler.launch(0, 1, [&](int, BlockHost& host) { ticks.follow(host); });
    });
    EXPECT_EQ(result.stop, Stop::none) << under_test.why;
  });
}

/// No rank waits for a block that only computes.
TEST(Progress, ABlockThatComputesIsNotLate) {
  SchedulerUnderTest under_test(2, 2, {}, timeout);
  const Ticks ticks(under_test.scheduler);
  under_test.run([&](int rank) {
    const LaunchResult result = under_test.scheduler.launch(rank, 1, [&](int, BlockHost& host) {
      if (rank == 1) return ticks.follow(host);
      std::this_thread::sleep_for(long_time);
    });
    EXPECT_EQ(result.stop, Stop::none) << under_test.why;
  });
}

TEST(Progress, WhatMovesOutsideTheBlocksCounts) {
  for (const auto& seed : without_and_with_a_seed) {
    SchedulerUnderTest under_test(1, 1, seed, timeout);
    uint64_t word = 0;
    const Agent agent(
        under_test.scheduler, [&] { under_test.scheduler.moved(); },
        [&] { store_release(&word, uint64_t{1}); });
    under_test.run([&](int) {
      const LaunchResult result = under_test.scheduler.launch(
          0, 1, [&](int, BlockHost& host) { EXPECT_TRUE(await(host, &word, 1)); });
      EXPECT_EQ(result.stop, Stop::none) << under_test.why;
    });
  }
}

/// Rank 0 makes no progress; rank 1 does until the world stops.
void expect_rank_0_late(unsigned workers, std::optional<uint64_t> seed,
                        const std::function<void(int, BlockHost&)>& stands_still) {
  SchedulerUnderTest under_test(2, workers, seed, timeout);
  uint64_t words[2] = {0, 0};
  under_test.run([&](int rank) {
    const LaunchResult result = under_test.scheduler.launch(rank, 2, [&](int block, BlockHost& host) {
      if (rank == 0) return stands_still(block, host);
      for (uint64_t token = 1;; ++token) {
        store_release(&words[block], token);
        if (!await(host, &words[1 - block], token)) return;
        host.step();
        if (!seed) sched_yield();
      }
    });
    EXPECT_EQ(result.stop, Stop::timed_out);
    EXPECT_FALSE(result.stuck.empty());
  });
  EXPECT_EQ(under_test.why.find("a launch of rank 0 has made no progress for 0.4 s; "), 0u) << under_test.why;
}

TEST(Progress, OfOneRankHidesNoneOfAnother) {
  static const uint64_t never = 0;
  for (const auto& seed : without_and_with_a_seed)
    expect_rank_0_late(2, seed, [](int, BlockHost& host) { await(host, &never, 1); });
}

TEST(Progress, ABlockThatMovedAndThenStandsIsFound) {
  static const uint64_t never = 0;
  for (const auto& seed : without_and_with_a_seed) {
    expect_rank_0_late(2, seed, [](int, BlockHost& host) {
      for (int times = 0; times < 10; ++times) {
        host.park([](const void*) { return true; }, nullptr);
        host.step();
      }
      await(host, &never, 1);
    });
  }
}

TEST(Progress, ALoopThatLooksForAStopIsAWait) {
  expect_rank_0_late(2, {}, [](int, BlockHost& host) {
    while (host.stopped() == Stop::none) sched_yield();
  });
}

TEST(Progress, ThreadsThatMeetAgainAndAgainDoNotMove) {
  for (const auto& seed : without_and_with_a_seed) {
    expect_rank_0_late(2, seed, [](int, BlockHost& host) {
      while (host.stopped() == Stop::none) host.park_at_barrier([](const void*) { return true; }, nullptr);
    });
  }
}

/// Checks a launch twice, with a timeout that has always passed.
struct Looks : fibers::SchedulerImpl {
  explicit Looks(AbortWord& word) : SchedulerImpl({.timeout = 1ns, .abort = &word}) {
    at.remaining = 1;
    start_clock(at);
  }

  bool look(bool can_run, bool waits) {
    while (Clock::now() <= at.deadline) continue;
    if (!overdue(at)) return false;
    at.can_run = can_run;
    at.waits = waits;
    return late(at);
  }

  LaunchResult run_blocks(int, int, const fibers::Body&, const fibers::Describe&) override { return {}; }
  void end_rank(int) override {}
  void rearm() override {}

  fibers::Launch at;
};

TEST(Progress, WhatCameInTimeCountsOnce) {
  AbortWord word;
  Looks of(word);
  EXPECT_FALSE(of.look(true, true)) << "a block can go on";
  EXPECT_TRUE(of.look(true, true)) << "it could for a whole time-out and did nothing";

  of.at.moved = true;
  EXPECT_FALSE(of.look(true, true));
  EXPECT_TRUE(of.look(false, true)) << "nobody can go on";
  EXPECT_FALSE(of.look(false, false)) << "nobody waits";
  of.at.remaining = 0;
  EXPECT_FALSE(of.look(false, true)) << "it has ended";
}

TEST(Progress, WhatPeersSeeCounts) {
  AbortWord word;
  Looks of(word);
  fibers::BlockTask block(of);
  block.begin(of.at, 0);
  EXPECT_EQ(block.stopped(), Stop::none);
  EXPECT_FALSE(of.at.moved);
  EXPECT_TRUE(of.at.asked);
  block.step();
  EXPECT_TRUE(of.at.moved);
}

/// Each operation of a program is progress, and so is each turn of a loop. Another block of the rank may wait
/// for all.
TEST(Progress, OperationsAndTurnsOfAProgramCount) {
  struct Host : BlockHost {
    void park(bool (*)(const void*), const void*) override {}
    void park_at_barrier(bool (*)(const void*), const void*) override {}
    void sync() override {}
    void step() override {}
    Stop stopped() override { return Stop::none; }
    void moved() override { ++moves; }
    int moves = 0;
  } host;
  Plan plan = two_ranks();
  Op& loop = add(block(plan), Opcode::pipeline);
  loop.unit_bytes = 16;
  loop.chunks = 8;
  loop.body = 1;
  add(block(plan), Opcode::copy, {in(0, 8)}, {out(0, 8)});
  char in_bytes[640] = {}, out_bytes[640];
  const lowering::BoundPlan bound =
      lowering::bind_plan(plan, 0, sizeof in_bytes, DType::u8, PacketForm::ll8, -1);
  const lowering::DeviceProgram program = lowering::lower(bound.image, {}, PacketForm::ll8);
  std::vector<uint64_t> state(program.state_bytes / sizeof(uint64_t)), room(1024);
  cpu::Run run;
  run.program = &program;
  run.states = reinterpret_cast<char*>(state.data());
  run.in = in_bytes;
  run.out = out_bytes;
  EXPECT_EQ(cpu::Interpreter(run, 0, host, reinterpret_cast<char*>(room.data())).run(), Stop::none);
  EXPECT_GE(host.moves, 20);
}

}  // namespace
}  // namespace chorale::test
