#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <optional>
#include <thread>

#include "../fibers/scheduler_under_test.hpp"
#include "chorale/executor.hpp"
#include "chorale/window.hpp"
#include "executor/binding/launch_count.hpp"
#include "executor/fibers/sanitizers.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/process.hpp"
#include "processes.hpp"
#include "tests/has.hpp"
#include "tests/unit/thrown.hpp"
#include "tools/shared.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using testing::Test;

class Join : public Test {
 protected:
  void TearDown() override { EXPECT_EQ(leftovers(), std::vector<std::string>()); }

  World join(int rank, int ranks, std::chrono::nanoseconds timeout = 120s) const {
    return World::join(address, rank, ranks, {.timeout = timeout});
  }

  /// Returns the results of four ranks for a launch of rank 0 that waits without end, after each has launched
  /// calls_of(rank).
  template <class CallsOf>
  std::vector<std::string> said_of_a_launch_that_waits(const CallsOf& calls_of) const {
    Processes ranks(4, [&](int rank) -> std::string {
      World world = join(rank, 4, 2s);
      Window window = Window::create(world, 4096);
      LaunchCount launches(world);
      launches.number(1);
      for (const uint64_t call : calls_of(rank)) launches.add(call);
      world.barrier();
      const uint64_t* const word = reinterpret_cast<const uint64_t*>(window.local());
      if (rank == 0)
        world.scheduler().launch(0, 1, [&](int, fibers::BlockHost& host) { await(host, word, 1); });
      for (;; std::this_thread::sleep_for(1ms)) world.check();
    });
    return {ranks.said(0), ranks.said(1), ranks.said(2), ranks.said(3)};
  }

  const std::string address = fresh_address();
};

TEST_F(Join, BarriersAndAllgathersOfAnySize) {
  Processes ranks(5, [&](int rank) -> std::string {
    World world = join(rank, 5);
    for (int round = 0; round < 200; ++round) {
      if (round % 3 == 0) world.barrier();
      const std::vector<std::byte> mine(size_t(rank * round * 97 % 20000), std::byte(rank + round));
      const auto all = world.allgather(mine);
      for (int peer = 0; peer < 5; ++peer) {
        if (all[peer] != std::vector<std::byte>(size_t(peer * round * 97 % 20000), std::byte(peer + round)))
          return "wrong";
      }
    }
    return "good";
  });
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

TEST_F(Join, TheNameIsFreeAgainAtOnce) {
  Processes ranks(3, [&](int rank) -> std::string {
    for (int times = 0; times < 20; ++times) {
      World world = join(rank, 3);
      world.barrier();
    }
    return "good";
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

TEST_F(Join, AMissingRankIsNamed) {
  for (const int missing : {0, 2}) {
    Processes ranks(4, [&](int rank) -> std::string {
      if (rank == missing) return "absent";
      World world = join(rank, 4, 3s);
      return "joined";
    });
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == missing) continue;
      const std::string said = ranks.said(rank);
      EXPECT_TRUE(has(said, "timed_out: rank " + std::to_string(missing) + " did not join") &&
                  has(said, "start all ranks with one name; "))
          << said;
    }
  }
}

/// The error is the death of the rank, and not its consequences for the others.
TEST_F(Join, ARankThatDiesWhenItHasDoneItsPartIsNamed) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3, 60s);
    const auto all = world.allgather(world::bytes_of(world::this_process()));
    world::collective_try(world, [&] {
      if (rank != 0) return;
      std::this_thread::sleep_for(300ms);  // until the others wait
      const auto last = world::read_as<world::Process>(all[2]);
      ::kill(last.pid, SIGKILL);
      while (world::is_alive(last)) std::this_thread::yield();
      throw RunError(RunError::Reason::other, "something of rank 2 cannot be opened");
    });
    return "good";
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "peer_lost: rank 2 (pid ") && has(said, ") died")) << said;
  }
}

/// A rank that may open no files cannot check, and must not report other ranks as dead.
TEST_F(Join, ARankThatMayOpenNoMoreFilesSaysSo) {
#if defined(CHORALE_ASAN)
  GTEST_SKIP() << "the sanitizers open files to look whether memory is there";
#endif
  Processes ranks(3, [&](int rank) -> std::string {
    if (rank == 2) {
      const int next = ::open("/dev/null", O_RDONLY);
      close(next);
      rlimit one_more{};
      one_more.rlim_cur = one_more.rlim_max = rlim_t(next) + 1;
      setrlimit(RLIMIT_NOFILE, &one_more);
    }
    World world = join(rank, 3, 60s);
    world.barrier();
    return "good";
  });
  EXPECT_EQ(ranks.said(2),
            "resources: cannot watch the process of rank 1: Too many open files; allow more open files "
            "(ulimit -n)");
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_EQ(said,
              "resources: rank 2: cannot watch the process of rank 1: Too many open files; allow more open "
              "files (ulimit -n)");
  }
}

TEST_F(Join, AResetThatFailsOnOneRankIsToldToAll) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3, 60s);
    int who = 0;
    const auto fail = [] { throw RunError(RunError::Reason::resources, "no device"); };
    if (rank == 1) world.group().before_reset(1, &who, fail);
    const std::string said = thrown([&] { world.reset(); });
    world.group().before_reset(rank, &who, {});
    world.reset();
    world.barrier();
    return said;
  });
  EXPECT_EQ(ranks.said(0), "resources: rank 1 could not be reset: no device");
  EXPECT_EQ(ranks.said(1), "resources: no device");
  EXPECT_EQ(ranks.said(2), "resources: rank 1 could not be reset: no device");
}

TEST_F(Join, SecondRanksAndSecondJobsAreNamed) {
  const auto right = [&](int rank) -> std::string {
    World world = join(rank, 3);
    world.barrier();
    return "joined";
  };
  Processes ranks(2, right);
  std::this_thread::sleep_for(1s);  // until both wait for rank 2
  Processes wrong(2, [&](int which) -> std::string {
    if (which == 0) return join(1, 3), "joined";  // that rank is taken
    return join(0, 3), "joined";                  // another job
  });
  EXPECT_TRUE(has(wrong.said(0), "mismatch: rank 1 of")) << wrong.said(0);
  EXPECT_TRUE(has(wrong.said(1), "mismatch: another job uses")) << wrong.said(1);
  // The ranks that are right have not noticed.
  ranks.spawn(2, right);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "joined");
}

/// A rank that waited would wait in vain.
TEST_F(Join, DifferentNumbersOfRanksEndItForAllAtOnce) {
  Processes ranks(3, [&](int rank) -> std::string {
    join(rank, rank == 2 ? 4 : 3);
    return "joined";
  });
  for (int rank = 0; rank < 3; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "mismatch: rank 2 says that '" + address + "' has 4 ranks, rank 0 (pid ") &&
                has(said, ") says 3"))
        << said;
  }
}

/// The first rank waits for the absent one, so that it too sees the refusal. It hears of the same refusal on
/// the board while it waits.
TEST_F(Join, ARefusalOnTheBoardLeavesNoName) {
  Processes ranks(2, [&](int rank) -> std::string {
    join(rank == 0 ? 0 : 2, rank == 0 ? 3 : 4);
    return "joined";
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "mismatch: rank 2 says that '" + address + "' has 4 ranks, rank 0 (pid ")) << said;
  }
}

/// In another namespace a process's number names no process, or a different one. The test acts as the first
/// rank.
TEST_F(Join, RanksOfDifferentProcessNamespacesAreNamed) {
  const uint64_t bytes = world::Control::bytes(2);
  const system::Descriptor memory = system::create_shared(bytes);
  const system::Mapping mapping(memory, bytes);
  auto& control = *reinterpret_cast<world::Control*>(mapping.data());
  control.magic = world::Control::version;
  control.ranks = 2;
  control.owner = world::this_process();
  control.owner.space += 1;
  const std::string file = "chorale-" + std::to_string(getuid()) + "-" + address.substr(6);
  ASSERT_TRUE(system::publish(memory, file));
  Processes ranks(2, [&](int rank) { return join(rank, 2), "joined"; });
  EXPECT_TRUE(
      has(ranks.said(0), "mismatch: another job uses '" + address + "', or used it, in another process"));
  const std::string said = ranks.said(1);
  EXPECT_TRUE(has(said, "mismatch: rank 0 (pid " + std::to_string(getpid()) + ") and rank 1 (pid ") &&
              has(said, "are in different process namespaces") && has(said, "--ipc=host --pid=host"))
      << said;
  // It has notified the first rank, which waits for it.
  EXPECT_TRUE(control.refusal.stands());
  EXPECT_TRUE(has(said, control.refusal.text)) << control.refusal.text;
  system::unpublish(memory, file);
}

TEST_F(Join, WhatADeadJobLeftIsReplaced) {
  Processes first(1, [&](int) { return join(0, 2), ""; });
  while (leftovers().empty()) std::this_thread::sleep_for(1ms);
  first.kill(0);
  first.said(0);
  ASSERT_FALSE(leftovers().empty());
  Processes second(2, [&](int rank) -> std::string {
    World world = join(rank, 2);
    world.barrier();
    return "good";
  });
  EXPECT_EQ(second.said(0), "good");
  EXPECT_EQ(second.said(1), "good");
}

TEST_F(Join, AWrongAddressOrRankIsRefused) {
  EXPECT_THROW(World::join("tcp://host", 0, 1), UsageError);
  EXPECT_THROW(World::join("shm://", 0, 1), UsageError);
  EXPECT_THROW(World::join("shm://a/b", 0, 1), UsageError);
  EXPECT_THROW(World::join("somewhere", 0, 1), UsageError);
  EXPECT_THROW(World::join(address, 2, 2), UsageError);
  EXPECT_THROW(World::join(address, -1, 2), UsageError);
  EXPECT_EQ(thrown([&] { World::join(address, 0, 1, {.timeout = -1ns}); }),
            "usage: JoinOptions::timeout is -1 ns: it should be above 0, or 0 for waits without a limit");
  for (const std::string& where : {address, std::string("tcp://127.0.0.1:29500")})
    EXPECT_EQ(thrown([&] { World::join(where, 1, 2147483647); }),
              "usage: rank 1 of 2147483647 ranks: a world has 65536 at most");
}

// --- death ---

using Count = tools::Shared<std::atomic<int>>;

void await_all(const Count& joined, int ranks) {
  while (joined[0] < ranks) std::this_thread::sleep_for(1ms);
}

void expect_lost(Processes& ranks, int killed, int count) {
  const std::string text =
      "rank " + std::to_string(killed) + " (pid " + std::to_string(ranks.pid(killed)) + ") died";
  ranks.kill(killed);
  for (int rank = 0; rank < count; ++rank) {
    if (rank == killed) continue;
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "peer_lost: ") && has(said, text)) << said;
  }
}

TEST_F(Join, AKillDuringJoin) {
  for (const int killed : {0, 1}) {
    Processes ranks(3, [&](int rank) { return join(rank, 4), ""; });  // rank 3 never comes
    std::this_thread::sleep_for(1s);                                  // until they wait for it
    expect_lost(ranks, killed, 3);
  }
}

TEST_F(Join, AKillDuringABarrier) {
  const Count joined(1);
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    ++joined[0];
    if (rank == 1) std::this_thread::sleep_for(1h);
    world.barrier();
    return "good";
  });
  await_all(joined, 3);
  std::this_thread::sleep_for(300ms);
  expect_lost(ranks, 1, 3);
}

TEST_F(Join, AKillBetweenBarriers) {
  const Count joined(1);
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    ++joined[0];
    for (;;) world.barrier();
  });
  await_all(joined, 3);
  std::this_thread::sleep_for(200ms);
  expect_lost(ranks, 2, 3);
}

TEST_F(Join, AKillDuringALaunch) {
  // The blocks wait for data that a dead peer never writes.
  const Count joined(1);
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    ++joined[0];
    Window window = Window::create(world, 4096);
    if (rank == 2) std::this_thread::sleep_for(1h);
    const uint64_t* const word = reinterpret_cast<const uint64_t*>(window.local());
    world.scheduler().launch(rank, 4, [&](int, fibers::BlockHost& host) { await(host, word, 1); });
    world.check();
    return "good";
  });
  await_all(joined, 3);
  std::this_thread::sleep_for(300ms);
  expect_lost(ranks, 2, 3);
}

TEST_F(Join, AKillAtAnyTimeEndsTheOthersAndLeavesNoName) {
  for (int times = 0; times < 60; ++times) {
    const int killed = times % 3;
    Processes ranks(3, [&](int rank) -> std::string {
      World world = join(rank, 3, 2s);
      for (;;) {
        Window window = Window::create(world, 8192);
        world.barrier();
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(times * 200));
    ranks.kill(killed);
    // A rank that was killed before it joined is missing, so do not wait for it.
    if (times * 200 < 4000) continue;
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == killed) continue;
      const std::string said = ranks.said(rank);
      EXPECT_FALSE(has(said, "good") || has(said, "silent")) << said;
    }
  }
  // If all three were killed while they joined, the world may have kept its name. The next world fixes that.
  Processes mend(1, [&](int) { return World::join(address, 0, 1), "good"; });
  EXPECT_EQ(mend.said(0), "good");
}

TEST_F(Join, OneThatLeftIsNotWaitedFor) {
  Processes ranks(2, [&](int rank) -> std::string {
    World world = join(rank, 2);
    if (rank == 1) return "left";
    world.barrier();
    return "good";
  });
  const std::string said = ranks.said(0);
  EXPECT_TRUE(has(said, "peer_lost: a barrier of rank 0 cannot end: rank 1 left the world")) << said;
}

/// The calls of a fork, and its end, are not those of the rank.
TEST_F(Join, AForkOfARankIsNone) {
  Processes ranks(2, [&](int rank) -> std::string {
    World world = join(rank, 2);
    std::optional<Executor> executor(world);
    const std::string wanted = "is a fork of that of rank " + std::to_string(rank) + " (pid " +
                               std::to_string(getpid()) + "), which alone takes part in the world: ";
    if (const pid_t child = fork(); child == 0) {
      int wrong = 0;
      const std::function<void()> calls[] = {
          [&] { world.barrier(); },   [&] { world.allgather({}); },      [&] { world.agree(std::nullopt); },
          [&] { world.reset(); },     [&] { world.survivors(); },        [&] { world.check(); },
          [&] { executor->check(); }, [&] { Window::create(world, 1); },
      };
      for (const auto& call : calls) wrong += !has(thrown(call), wanted);
      world.abort("no rank has done this");
      executor.reset();
      { const World gone = std::move(world); }
      _exit(wrong);
    } else {
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) return "calls of a fork work: " + std::to_string(status);
    }
    world.barrier();
    return "good";
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

TEST_F(Join, AForkOfTheProcessOfAllRanksIsNone) {
  Processes process(1, [&](int) -> std::string {
    std::vector<World> worlds = World::local(2);
    if (const pid_t child = fork(); child == 0) {
      const bool right =
          has(thrown([&] { worlds[0].barrier(); }), "is a fork of the one that all ranks live in");
      worlds.clear();
      _exit(right ? 0 : 1);
    } else {
      int status = 0;
      waitpid(child, &status, 0);
      return status == 0 ? "good" : "calls of a fork work";
    }
  });
  EXPECT_EQ(process.said(0), "good");
}

TEST_F(Join, OneThatLeftIsNamedByALaunchThatWaitsForIt) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3, 3s);
    Window window = Window::create(world, 4096);
    if (rank == 2) return "left";
    const uint64_t* const word = reinterpret_cast<const uint64_t*>(window.local());
    world.scheduler().launch(rank, 1, [&](int, fibers::BlockHost& host) { await(host, word, 1); });
    world.check();
    return "good";
  });
  for (const int rank : {0, 1}) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "timed_out: timed out: rank 2 left the world; a launch of rank ")) << said;
  }
}

TEST_F(Join, WhoHasLaunchedFewerCallsIsNamedByALaunchThatWaits) {
  const auto calls_of = [](int rank) { return std::vector<uint64_t>(rank == 0 ? 3 : size_t(rank - 1)); };
  for (const std::string& said : said_of_a_launch_that_waits(calls_of)) {
    EXPECT_TRUE(has(said,
                    "timed_out: timed out: rank 1 has launched 0 calls, rank 2 1, rank 3 2, and rank 0 3; "
                    "a launch of rank 0 has made no progress for 2 s; if it only takes longer, "))
        << said;
  }
}

TEST_F(Join, WhoHasLaunchedAnotherCallIsNamedByALaunchThatWaits) {
  const auto calls_of = [](int rank) { return std::vector<uint64_t>{5, rank == 2 ? 6u : 7u}; };
  for (const std::string& said : said_of_a_launch_that_waits(calls_of)) {
    EXPECT_TRUE(
        has(said,
            "timed_out: timed out: ranks 0 and 2 have launched different calls, each its call 2 of one "
            "executor: plan, bytes, dtype, op and packet form have to be the same on all ranks; a "
            "launch of rank 0 has made no progress for 2 s; if it only takes longer, "))
        << said;
  }
}

TEST_F(Join, AbortReachesOtherProcessesAndResetMendsIt) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    for (int round = 0; round < 10; ++round) {
      try {
        if (rank == round % 3) {
          world.abort("round " + std::to_string(round));
          world.barrier();
        }
        for (;;) world.barrier();
      } catch (const RunError& error) {
        const std::string expected =
            "aborted by rank " + std::to_string(round % 3) + ": round " + std::to_string(round);
        if (error.reason != RunError::Reason::aborted || error.what() != expected) throw;
      }
      world.reset();
    }
    world.barrier();
    return "good";
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

/// A peer that was counted before, and gave up, does not count any more.
TEST_F(Join, AResetThatTimedOutDoesNotStandForTheNext) {
  Processes ranks(2, [&](int rank) -> std::string {
    World world = join(rank, 2, 300ms);
    const Window said = Window::create(world, sizeof(uint64_t));
    uint64_t& alone = *reinterpret_cast<uint64_t*>(said.at(0));  // which rank has been alone and failed
    const auto resets = [&world] {
      try {
        world.reset();
        world.barrier();
      } catch (const RunError& error) {
        if (error.reason != RunError::Reason::timed_out) throw;
        return false;
      }
      return true;
    };
    if (rank == 0) {
      for (int time = 0; time < 3; ++time)
        if (resets()) return "rank 0 was alone in a reset";
      store_release(&alone, uint64_t(1));
    } else {
      while (load_acquire(&alone) < 1) std::this_thread::yield();
      if (resets()) return "rank 1 was alone in a reset";
      store_release(&alone, uint64_t(2));
    }
    while (load_acquire(&alone) < 2) std::this_thread::yield();
    for (int time = 0; time < 20; ++time)  // slow machines may need more than one
      if (resets()) return "good";
    return "the ranks never met";
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

// --- windows ---

TEST_F(Join, WindowsAreSharedZeroedAndOfAnySize) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    for (int times = 0; times < 5; ++times) {
      Window window = Window::create(world, uint64_t(rank) * 5000);
      if (window.bytes(0) != 0 || window.at(0) || window.bytes(2) != 10000) return "sizes";
      if (rank > 0 &&
          (reinterpret_cast<uintptr_t>(window.local()) % 4096 != 0 || window.local()[4999] != std::byte(0))) {
        return "not zeroed";
      }
      world.barrier();
      if (rank != 2) window.at(2)[9000 + rank] = std::byte(rank + 1);
      world.barrier();
      if (window.at(2)[9000] != std::byte(1) || window.at(2)[9001] != std::byte(2)) return "not shared";
    }
    return "good";
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

TEST_F(Join, ATooLargeWindowFailsOnAllRanksAndTheWorldLives) {
  Processes ranks(2, [&](int rank) -> std::string {
    World world = join(rank, 2);
    try {
      Window::create(world, rank == 1 ? uint64_t(1) << 50 : 4096);
      return "no error";
    } catch (const RunError& error) {
      world.barrier();
      return std::string(name(error.reason)) + ": " + error.what();
    }
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "resources: rank 1: 1125899906842624 bytes of shared memory needed, ")) << said;
  }
}

}  // namespace
}  // namespace chorale::test
