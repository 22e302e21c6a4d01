/// \file
/// Tests World::survivors(), which makes a new world of the remaining ranks.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "../fibers/scheduler_under_test.hpp"
#include "chorale/window.hpp"
#include "executor/fibers/sanitizers.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"
#include "few_files.hpp"
#include "processes.hpp"
#include "tests/has.hpp"
#include "tests/unit/thrown.hpp"
#include "tools/shared.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using Reason = RunError::Reason;
using Ranks = std::vector<int>;

std::string text_of(const Ranks& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : " ") + std::to_string(rank);
  return text;
}

/// Returns the former ranks of a world that works, if all of its ranks report the same ones in the same
/// order.
std::string told(World& world) {
  const Ranks former = world.former_ranks();
  for (const auto& theirs : world.allgather(std::as_bytes(std::span(former)))) {
    const auto mine = std::as_bytes(std::span(former));
    if (!std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end())) return "other ranks";
  }
  if (int(former.size()) != world.ranks()) return "another number of ranks";
  Window window = Window::create(world, 4096);
  *window.at((world.rank() + 1) % world.ranks()) = std::byte(7);
  world.barrier();
  return *window.local() == std::byte(7) ? text_of(former) : "no window";
}

/// Runs barriers until the world has stopped, or a peer has left it.
std::string barriers(World& world) {
  return thrown([&] {
    for (;;) world.barrier();
  });
}

class Survivors : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(leftovers(), std::vector<std::string>()); }

  World join(int rank, int ranks, std::chrono::nanoseconds timeout = 120s) const {
    return World::join(address, rank, ranks, {.workers = 3, .timeout = timeout});
  }

  const std::string address = fresh_address();
};

// --- processes ---

TEST_F(Survivors, GoOnWithoutTheDeadTwice) {
  Processes ranks(5, [&](int rank) -> std::string {
    World world = join(rank, 5);
    const int of_world[] = {1, 2};  // the ranks that die: rank 1, then rank 2 of the remaining ones
    std::string all = text_of(world.former_ranks());
    for (const int dies : of_world) {
      world.barrier();
      if (world.rank() == dies) ::kill(getpid(), SIGKILL);
      const std::string said = barriers(world);
      if (!has(said, "peer_lost: rank " + std::to_string(dies) + " (pid ") ||
          !said.ends_with(") died; the others can go on in World::survivors()"))
        return said;
      World next = world.survivors();
      if (next.timeout() != 120s || next.local() || next.resets() != 0) return "other options";
      if (next.former_ranks().at(size_t(next.rank())) != world.rank()) return "another rank";
      all += "|" + told(next);
      world = std::move(next);
    }
    return all;
  });
  for (const int rank : {0, 2, 4}) EXPECT_EQ(ranks.said(rank), "|0 2 3 4|0 1 3") << rank;
}

TEST_F(Survivors, OfAWorldThatHasNotStopped) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    world.barrier();
    if (rank == 0) return "left";
    World next = world.survivors();
    return told(next);
  });
  for (const int rank : {1, 2}) EXPECT_EQ(ranks.said(rank), "1 2");
}

TEST_F(Survivors, OfAnAbortAreAll) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    for (int round = 0; round < 20; ++round) {
      if (rank == round % 3) world.abort("round " + std::to_string(round));
      if (const std::string said = barriers(world); !has(said, "aborted by rank")) return said;
      world = world.survivors();
      if (const std::string said = told(world); said != "0 1 2") return said;
    }
    return "good";
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

TEST_F(Survivors, AreOneIfAllOthersDied) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    world.barrier();
    if (rank != 2) ::kill(getpid(), SIGKILL);
    barriers(world);
    World alone = world.survivors();
    return told(alone);
  });
  EXPECT_EQ(ranks.said(2), "2");
}

TEST_F(Survivors, WhoLivesAndDoesNotComeIsNamedOnAll) {
  const tools::Shared<std::atomic<int>> given_up(1);
  Processes ranks(4, [&](int rank) -> std::string {
    World world = join(rank, 4, 3s);
    world.barrier();
    if (rank == 0) ::kill(getpid(), SIGKILL);
    barriers(world);
    std::string said;
    if (rank == 2) {
      while (given_up[0] < 2) std::this_thread::sleep_for(1ms);
    } else {
      said = thrown([&] { world.survivors(); });
      ++given_up[0];
    }
    World next = world.survivors();
    return said + told(next);
  });
  const std::string late =
      "s in survivors() for rank 2: all ranks that are left have to call it, and that one lives; ";
  for (const int rank : {1, 3}) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "timed_out: timed out: rank ") && has(said, late) && has(said, "CHORALE_TIMEOUT"))
        << said;
    EXPECT_TRUE(said.ends_with("1 2 3")) << said;
  }
  EXPECT_EQ(ranks.said(2), "1 2 3");
}

/// Ends the calling thread, which is its process's first, while `body` runs in another thread. So the process
/// loses its files as a killed one does. The process is killed half a second later, because a process can
/// take that long to end after it has lost its files.
[[noreturn]] void end_slowly(const std::function<void()>& body) {
  std::thread([&body] {
    const std::string standard_error = "/proc/" + std::to_string(getpid()) + "/fd/2";
    while (std::filesystem::is_symlink(standard_error)) std::this_thread::sleep_for(1ms);
    body();
  }).detach();
  std::thread([] {
    std::this_thread::sleep_for(500ms);
    ::kill(getpid(), SIGKILL);
  }).detach();
  syscall(SYS_exit, 0);
  std::abort();
}

TEST_F(Survivors, GoOnWithoutTheOneThatOffersAndIsAboutToEnd) {
  Processes ranks(4, [&](int rank) -> std::string {
    World world = join(rank, 4);
    world.barrier();
    if (rank == 1) ::kill(getpid(), SIGKILL);
    barriers(world);
    if (rank == 0) end_slowly([&] { thrown([&] { world.survivors(); }); });
    World next = world.survivors();
    return told(next);
  });
  for (const int rank : {2, 3}) EXPECT_EQ(ranks.said(rank), "2 3") << rank;
}

TEST_F(Survivors, HearThatAPeerDiedWhoseMemoryCannotBeOpened) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    const auto bind = [&] { return thrown([&] { Window::create(world, 4096); }); };
    if (rank == 0) end_slowly([&] { bind(); });
    const std::string said = bind();
    World next = world.survivors();
    return said + "|" + told(next);
  });
  for (const int rank : {1, 2}) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "peer_lost: rank 0 (pid ") &&
                said.ends_with(") died; the others can go on in World::survivors()|1 2"))
        << said;
  }
}

/// Threads of one process live and die together.
TEST_F(Survivors, OfProcessesWithSeveralRanks) {
  Processes ranks(2, [&](int process) -> std::string {
    std::string said[2];
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&, thread] {
          World world = join(2 * process + thread, 4);
          world.barrier();
          if (process == 0 && thread == 1) ::kill(getpid(), SIGKILL);
          barriers(world);
          World next = world.survivors();
          said[thread] = told(next);
        });
      }
    }
    return said[0] + ", " + said[1];
  });
  EXPECT_EQ(ranks.said(1), "2 3, 2 3");
}

/// Leaves rank 1 out of the survivors, although it lives, and then uses the old world once more.
std::string without_one(World& world) {
  world.barrier();
  const Ranks out{1};
  std::string said = "left out";
  if (world.rank() != 1) {
    World next = world.survivors(out);
    said = told(next);
  }
  world.barrier();
  return said;
}

TEST_F(Survivors, MayLeaveOutALivingRank) {
  const std::vector<std::string> expected{"0 2", "left out", "0 2"};
  std::vector<std::string> said(3);
  run_local(3, [&](World& world) { said[size_t(world.rank())] = without_one(world); });
  EXPECT_EQ(said, expected);
  Processes ranks(3, [&](int rank) {
    World world = join(rank, 3);
    return without_one(world);
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), expected[size_t(rank)]);
}

TEST_F(Survivors, LeaveOutOnlyOtherRanksOfTheWorld) {
  run_local(2, [](World& world) {
    for (const int out : {-1, 2, world.rank()}) {
      const Ranks without{out};
      EXPECT_EQ(thrown([&] { world.survivors(without); }),
                "usage: rank " + std::to_string(world.rank()) + " of 2 ranks cannot leave out rank " +
                    std::to_string(out) + ": that must be another rank of the world");
    }
  });
}

/// Makes worlds with several lists of one world, then of the new worlds, and then of the old world once more.
std::string with_lists(World& world) {
  const int rank = world.rank();
  const auto of = [&](World& from, const Ranks& out) {
    World next = from.survivors(out);
    return told(next);
  };
  std::string said;
  for (int round = 0; round < 3; ++round) {
    // Rank 3 comes to the second list while the others may be in the first.
    if (rank != 3) said += of(world, {3}) + "|";
    if (rank != 0) said += of(world, {0}) + "|";
  }
  // Two lists without a rank in common, at the same time.
  World half = rank < 2 ? world.survivors(Ranks{2, 3}) : world.survivors(Ranks{1, 0});
  said += told(half) + "|";
  said += of(half, {}) + "|" + of(half, {}) + "|";
  if (half.rank() == 1) said += of(half, {0}) + "|";
  return said + of(world, {});
}

TEST_F(Survivors, MakeOneWorldAfterTheOtherWithAnyLists) {
  const std::string first = "0 1 2|", second = "1 2 3|", end = "0 1|0 1|0 1|", all = "0 1 2 3";
  const auto thrice = [](const std::string& text) { return text + text + text; };
  // The ranks of a half are 2 and 3 in the old world.
  const std::string wanted[] = {thrice(first) + end + all, thrice(first + second) + end + "1|" + all,
                                thrice(first + second) + "2 3|0 1|0 1|" + all,
                                thrice(second) + "2 3|0 1|0 1|1|" + all};
  Processes ranks(4, [&](int rank) {
    World world = join(rank, 4);
    return with_lists(world);
  });
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(ranks.said(rank), wanted[rank]) << rank;
  std::vector<LocalOptions> kinds{{.workers = 3, .timeout = 120s}};
  for (uint64_t seed = 0; seed < 20; ++seed) kinds.push_back({.seed = seed});
  for (const LocalOptions& options : kinds) {
    std::string said[4];
    run_local(
        4, [&](World& world) { said[world.rank()] = with_lists(world); }, options);
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(said[rank], wanted[rank]) << rank;
  }
}

TEST_F(Survivors, DifferentListsOfOneCallAreNamed) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3, rank == 0 ? 1s : 120s);
    std::string said;
    do {
      said = thrown([&] { world.survivors(rank == 0 ? Ranks{} : rank == 1 ? Ranks{2} : Ranks{0}); });
    } while (!has(said, "leave out"));  // the others have not come yet
    return said;
  });
  const std::string said = ranks.said(0);
  EXPECT_TRUE(has(said,
                  "timed_out: timed out: rank 0 waited 1 s in survivors() for ranks 1, 2: all ranks that "
                  "are left have to call it, and those live; ranks 1, 2 leave out other ranks than rank 0; "))
      << said;
}

/// Ranks with two lists make worlds all the time, and the lowest rank of both is killed.
TEST_F(Survivors, OfOneListGoOnWhenThoseOfAnotherDie) {
  for (int times = 0; times < 10; ++times) {
    const tools::Shared<std::atomic<int>> made(1);
    Processes ranks(5, [&](int rank) -> std::string {
      World world = join(rank, 5);
      const Ranks out = rank < 3 ? Ranks{3, 4} : Ranks{0, 1, 2};
      for (int round = 0; round < 400; ++round) {
        World next = world.survivors(out);
        ++made[0];
        if (const std::string said = thrown([&] { next.barrier(); }); said != "nothing" && rank > 2)
          return said;
      }
      World next = world.survivors(out);
      return told(next);
    });
    while (made[0] <= 100 * times) std::this_thread::sleep_for(100us);
    ranks.kill(0);
    for (const int rank : {1, 2}) {
      const std::string said = ranks.said(rank);
      EXPECT_TRUE(said == "1 2" || said == "0 1 2") << said;
    }
    for (const int rank : {3, 4}) EXPECT_EQ(ranks.said(rank), "3 4");
  }
}

/// The rank that lacks files is first the one that offers the memory, and then the one that opens it.
TEST_F(Survivors, AllHearOfOneThatMayOpenNoMoreFiles) {
#if defined(CHORALE_ASAN)
  GTEST_SKIP() << "the sanitizers open files to look whether memory is there";
#endif
  for (const int poor : {1, 2}) {
    Processes ranks(3, [&](int rank) -> std::string {
      World world = join(rank, 3);
      world.barrier();
      if (rank == 0) ::kill(getpid(), SIGKILL);
      barriers(world);
      const std::string said = [&] {
        const FewFiles few(rank == poor);
        return thrown([&] { world.survivors(); });
      }();
      World next = world.survivors();
      return said + "|" + told(next);
    });
    for (const int rank : {1, 2}) {
      const std::string said = ranks.said(rank);
      EXPECT_TRUE(has(said, "resources: rank " + std::to_string(poor) + ": cannot ") &&
                  has(said, "Too many open files; allow more open files (ulimit -n)|1 2"))
          << said;
    }
  }
}

/// Makes one world after the other until `how_many` ranks are left, and returns which.
std::string last_of(World world, size_t how_many) {
  Ranks left;
  for (int rank = 0; rank < world.ranks(); ++rank) left.push_back(rank);
  for (;;) {
    World next = world.survivors();
    Ranks still;
    for (const int former : next.former_ranks()) still.push_back(left.at(size_t(former)));
    left = still;
    world = std::move(next);
    try {
      // If two ranks had different sets, this would hang or differ.
      if (const std::string said = told(world); said != text_of(world.former_ranks())) return said;
      if (left.size() == how_many) return "left: " + text_of(left);
    } catch (const RunError& error) {
      if (error.reason != Reason::peer_lost || left.size() == how_many) return error.what();
    }
  }
}

/// Two ranks are killed at any time, including the lowest one, which offers the memory.
TEST_F(Survivors, AgreeWheneverOthersAreKilled) {
  static unsigned seed = 20;
  std::mt19937 random(seed++);
  for (int times = 0; times < 25; ++times) {
    const tools::Shared<std::atomic<int>> joined(1);
    Processes ranks(5, [&](int rank) -> std::string {
      World world = join(rank, 5);
      ++joined[0];
      return last_of(std::move(world), 3);
    });
    while (joined[0] < 5) std::this_thread::sleep_for(100us);
    const int other = 1 + int(random() % 4);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    ranks.kill(0);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    ranks.kill(other);
    Ranks left;
    for (int rank = 1; rank < 5; ++rank) {
      if (rank != other) left.push_back(rank);
    }
    for (const int rank : left) EXPECT_EQ(ranks.said(rank), "left: " + text_of(left)) << "rank " << rank;
  }
}

// --- threads ---

std::vector<LocalOptions> kinds_of_worlds() {
  std::vector<LocalOptions> kinds(1);
  for (uint64_t seed = 0; seed < 20; ++seed) kinds.push_back({.seed = seed});
  return kinds;
}

TEST(LocalSurvivors, GoOnWithoutThoseThatLeftTwice) {
  for (const LocalOptions& options : kinds_of_worlds()) {
    std::atomic<int> good = 0;
    run_local(
        5,
        [&](World& first) {
          if (first.rank() == 1) return;
          EXPECT_TRUE(has(barriers(first), "cannot end: rank 1 left the world"));
          World second = first.survivors();
          EXPECT_TRUE(second.local());
          EXPECT_EQ(told(second), "0 2 3 4");
          if (second.rank() == 0) return;
          EXPECT_TRUE(has(barriers(second), "cannot end: rank 0 left the world"));
          World third = second.survivors();
          EXPECT_EQ(told(third), "1 2 3");
          EXPECT_EQ(third.former_ranks().at(size_t(third.rank())), second.rank());
          ++good;
        },
        options);
    EXPECT_EQ(good, 3);
  }
}

/// Blocks of the new world run, and wait for each other, after the old world has stopped for good.
TEST(LocalSurvivors, RunBlocks) {
  for (const LocalOptions& options : kinds_of_worlds()) {
    uint64_t words[3] = {};
    run_local(
        3,
        [&](World& old) {
          const uint64_t never = 0;
          if (old.rank() == 0) old.abort("enough");
          old.scheduler().launch(old.rank(), 2,
                                 [&](int, fibers::BlockHost& host) { await(host, &never, 1); });
          EXPECT_TRUE(has(thrown([&] { old.check(); }), "aborted by rank 0: enough"));
          if (old.rank() == 0) return;
          World world = old.survivors();
          const int next = 1 + (world.rank() + 1) % 2;
          world.scheduler().launch(world.rank(), 2, [&](int block, fibers::BlockHost& host) {
            if (block == 0) store_release(&words[next], uint64_t(1));
            await(host, &words[old.rank()], 1);
          });
          EXPECT_EQ(thrown([&] { world.check(); }), "nothing");
          EXPECT_NE(thrown([&] { old.check(); }), "nothing");
          EXPECT_EQ(told(world), "1 2");
        },
        options);
  }
}

TEST(LocalSurvivors, StopApartFromTheOldWorld) {
  for (const LocalOptions& options : kinds_of_worlds()) {
    run_local(
        3,
        [&](World& old) {
          old.barrier();
          World world = old.survivors();
          old.barrier();  // it has not stopped
          if (world.rank() == 2) world.abort("the new one");
          EXPECT_TRUE(has(barriers(world), "aborted by rank 2: the new one"));
          old.barrier();
          world.reset();
          EXPECT_EQ(told(world), "0 1 2");
        },
        options);
  }
}

TEST(LocalSurvivors, WhoIsStillInTheOldWorldHearsOfADeadlock) {
  for (LocalOptions options : kinds_of_worlds()) {
    if (!options.seed) continue;
    options.timeout = 0s;
    run_local(
        3,
        [&](World& old) {
          if (old.rank() == 1) {
            EXPECT_TRUE(has(thrown([&] { old.barrier(); }), "deadlock: "));
          }
          World world = old.survivors();
          EXPECT_EQ(told(world), "0 1 2");
        },
        options);
  }
}

TEST(LocalSurvivors, WhoLivesAndDoesNotComeIsNamed) {
  std::atomic<int> given_up = 0;
  run_local(
      4,
      [&](World& world) {
        if (world.rank() == 0) return;
        if (world.rank() == 3) {
          while (given_up < 2) std::this_thread::sleep_for(1ms);
        } else {
          const std::string said = thrown([&] { world.survivors(); });
          EXPECT_TRUE(has(said, "timed_out: timed out: rank ") && has(said, "in survivors() for rank 3: "))
              << said;
          ++given_up;
        }
        World next = world.survivors();
        EXPECT_EQ(told(next), "1 2 3");
      },
      {.timeout = 2s});
}

/// A wait that no remaining rank can end is not waited for.
TEST(LocalSurvivors, AreNotWaitedForInVainWithASeed) {
  int found = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    run_local(2,
              [&](World& world) {
                world.abort("both hear of it");
                if (world.rank() == 1) {
                  thrown([&] { world.reset(); });
                } else {
                  found +=
                      has(thrown([&] { world.survivors(); }),
                          "deadlock: deadlock: rank 0 waits in survivors() for rank 1, and every rank waits");
                }
              },
              {.seed = seed, .timeout = 300ms});
  }
  EXPECT_GT(found, 0);
}

TEST(LocalSurvivors, ManyTimes) {
  for (LocalOptions options : kinds_of_worlds()) {
    run_local(
        4,
        [&](World& of) {
          std::vector<World> worlds;
          worlds.push_back(of.survivors());
          for (int times = 0; times < 50; ++times) worlds.push_back(worlds.back().survivors());
          EXPECT_EQ(told(worlds.back()), "0 1 2 3");
        },
        options);
  }
}

}  // namespace
}  // namespace chorale::test
