/// \file
/// Tests World::split().

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chorale/window.hpp"
#include "chorale/world.hpp"
#include "executor/fibers/sanitizers.hpp"
#include "executor/world/collective_try.hpp"
#include "few_files.hpp"
#include "processes.hpp"
#include "tests/free_port.hpp"
#include "tests/has.hpp"
#include "tests/unit/thrown.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;

/// Returns the old ranks of the ranks of a world that works, such as "3 1 | 0".
std::string those_of(std::optional<World>& world, int old_rank) {
  if (!world) return "none";
  std::string text;
  for (const auto& theirs : world->allgather(world::bytes_of(old_rank)))
    text += (text.empty() ? "" : " ") + std::to_string(world::read_as<int>(theirs));
  Window window = Window::create(*world, 4096);
  *window.at((world->rank() + 1) % world->ranks()) = std::byte(7);
  world->barrier();
  if (*window.local() != std::byte(7)) return "no window";
  if (!world->former_ranks().empty()) return "former ranks";
  return text + " | " + std::to_string(world->rank());
}

using Body = std::function<std::string(World&)>;

/// Runs a body on ranks that are processes, threads, or fibers with a seed, and checks what each rank says.
void expect_of_all_kinds(int ranks, const Body& body, const std::function<std::string(int)>& wanted) {
  {
    const std::string address = fresh_address();
    Processes processes(ranks, [&](int rank) {
      World world = World::join(address, rank, ranks, {.workers = 3, .timeout = 120s});
      return body(world);
    });
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(processes.said(rank), wanted(rank)) << "process " << rank;
  }
  std::vector<LocalOptions> kinds = {{.workers = 3, .timeout = 120s}};
  for (uint64_t seed = 0; seed < 5; ++seed) kinds.push_back({.seed = seed});
  for (const LocalOptions& options : kinds) {
    std::vector<std::string> said(static_cast<size_t>(ranks));
    run_local(
        ranks, [&](World& world) { said[size_t(world.rank())] = body(world); }, options);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(said[size_t(rank)], wanted(rank))
          << "rank " << rank << (options.seed ? " with seed " + std::to_string(*options.seed) : "");
    }
  }
}

class Split : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(leftovers(), std::vector<std::string>()); }
};

TEST_F(Split, ByColorKeyAndRank) {
  // Keys put rank 4 before ranks 0 and 2, whose keys are equal. Colors and keys may have any value.
  expect_of_all_kinds(
      5,
      [](World& world) {
        const int rank = world.rank();
        const int keys[] = {7, 2147483647, 7, -2147483647 - 1, -1};
        std::optional<World> part = world.split(rank % 2 == 0 ? -5 : 2147483647, keys[rank]);
        if (part && (part->timeout() != world.timeout() || part->local() != world.local()))
          return std::string("other");
        return those_of(part, rank);
      },
      [](int rank) {
        const char* const wanted[] = {"4 0 2 | 1", "3 1 | 1", "4 0 2 | 2", "3 1 | 0", "4 0 2 | 0"};
        return std::string(wanted[rank]);
      });
}

TEST_F(Split, ARankWithoutAColorGetsNoWorld) {
  expect_of_all_kinds(
      4,
      [](World& world) {
        std::optional<World> none = world.split(std::nullopt, 0);
        if (none) return std::string("a world without a color");
        std::optional<World> part = world.split(world.rank() == 1 ? std::nullopt : std::optional(0), 0);
        std::optional<World> alone = world.split(world.rank(), 5);  // a world for each rank
        return those_of(part, world.rank()) + ", " + those_of(alone, world.rank());
      },
      [](int rank) {
        const std::string wanted[] = {"0 2 3 | 0", "none", "0 2 3 | 1", "0 2 3 | 2"};
        return wanted[rank] + ", " + std::to_string(rank) + " | 0";
      });
}

TEST_F(Split, ANewWorldSplitsAgainAfterTheOldOneIsGone) {
  expect_of_all_kinds(
      6,
      [](World& world) {
        const int rank = world.rank();
        std::optional<World> half = world.split(rank / 3, -rank);
        { const World gone = std::move(world); }
        std::string said = those_of(half, rank);
        // Three ranks in the reverse order: the last two of them go on.
        std::optional<World> pair =
            half->split(half->rank() == 0 ? std::nullopt : std::optional(1), -half->rank());
        half.reset();
        return said + ", " + those_of(pair, rank);
      },
      [](int rank) {
        const std::string wanted[] = {"2 1 0 | 2, 0 1 | 0", "2 1 0 | 1, 0 1 | 1", "2 1 0 | 0, none",
                                      "5 4 3 | 2, 3 4 | 0", "5 4 3 | 1, 3 4 | 1", "5 4 3 | 0, none"};
        return wanted[rank];
      });
}

TEST_F(Split, AnAbortOfOneWorldDoesNotStopTheOthers) {
  expect_of_all_kinds(
      4,
      [](World& world) {
        const int rank = world.rank();
        std::optional<World> one = world.split(0, 0), other = world.split(0, 0);
        if (rank == 1) one->abort("on purpose");
        const std::string said = thrown([&] {
          for (;;) one->barrier();
        });
        if (!has(said, "aborted: ") || !has(said, "on purpose")) return said;
        std::string all = those_of(other, rank);
        world.barrier();
        if (rank == 2) world.abort("on purpose");
        const std::string old = thrown([&] {
          for (;;) world.barrier();
        });
        if (!has(old, "aborted: ")) return old;
        return all + ", " + those_of(other, rank);
      },
      [](int rank) {
        const std::string mine = "0 1 2 3 | " + std::to_string(rank);
        return mine + ", " + mine;
      });
}

TEST_F(Split, ARankInAnotherCallIsNamed) {
  expect_of_all_kinds(
      3,
      [](World& world) {
        return thrown([&] { world.rank() == 1 ? world.barrier() : (void)world.split(0, 0); });
      },
      [](int) {
        return "mismatch: rank 0 is in a split, but rank 1 in a barrier: all ranks have to make the same "
               "collective calls in the same order";
      });
}

TEST_F(Split, AMissingRankIsNamed) {
  const std::string address = fresh_address();
  Processes ranks(3, [&](int rank) -> std::string {
    World world = World::join(address, rank, 3, {.timeout = 2s});
    if (rank == 1) {
      while (thrown([&] { world.check(); }) == "nothing") std::this_thread::sleep_for(1ms);
      return "absent";
    }
    return thrown([&] { world.split(0, 0); });
  });
  for (const int rank : {0, 2}) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "timed_out: ") && has(said, " waited 2 s in a split for rank 1; ")) << said;
  }
}

TEST_F(Split, TheDeathOfARankStopsItsWorldsOnly) {
  const std::string address = fresh_address();
  Processes ranks(4, [&](int rank) -> std::string {
    World world = World::join(address, rank, 4, {.timeout = 120s});
    std::optional<World> pair = world.split(rank / 2, 0);
    if (rank == 3) ::kill(getpid(), SIGKILL);
    // No rank leaves the old world before it has stopped, because that would be another error.
    const std::string of_old = thrown([&] {
      for (;;) world.barrier();
    });
    if (rank != 2) return of_old + "|" + those_of(pair, rank);
    const std::string of_pair = thrown([&] {
      for (;;) pair->barrier();
    });
    World next = pair->survivors();
    return of_pair + "|" + std::to_string(next.ranks());
  });
  for (const int rank : {0, 1}) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "peer_lost: rank 3 (pid ") && said.ends_with("|0 1 | " + std::to_string(rank)))
        << said;
  }
  const std::string said = ranks.said(2);
  EXPECT_TRUE(has(said, "peer_lost: rank 1 (pid ") && said.ends_with("|1")) << said;
}

/// Rank 0 makes memory, and rank 1 opens it. Rank 2, in another new world, gets the error too.
TEST_F(Split, AllHearOfOneThatMayOpenNoMoreFiles) {
#if defined(CHORALE_ASAN)
  GTEST_SKIP() << "the sanitizers open files to look whether memory is there";
#endif
  for (const int poor : {0, 1}) {
    const std::string address = fresh_address();
    Processes ranks(3, [&](int rank) -> std::string {
      World world = World::join(address, rank, 3, {.timeout = 120s});
      world.barrier();
      const std::string said = [&] {
        const FewFiles few(rank == poor);
        return thrown([&] { world.split(rank == 2, 0); });
      }();
      std::optional<World> part = world.split(0, 0);
      return said + "|" + those_of(part, rank);
    });
    for (int rank = 0; rank < 3; ++rank) {
      const std::string said = ranks.said(rank);
      EXPECT_TRUE(has(said, "resources: rank " + std::to_string(poor) + ": ") &&
                  has(said, "Too many open files") && said.ends_with("|0 1 2 | " + std::to_string(rank)))
          << said;
    }
  }
}

TEST_F(Split, IsForWorldsOfOneHost) {
  const std::string address = free_address();
  Processes ranks(2, [&](int rank) -> std::string {
    World world = World::join(address, rank, 2,
                              {.timeout = 120s, .host = "h" + std::to_string(rank), .secret = "none"});
    return thrown([&] { world.split(0, 0); });
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "usage: split() is for worlds of one host, and this one has several")) << said;
  }
}

TEST_F(Split, AForkIsNoRank) {
  World world = std::move(World::local(1)[0]);
  Processes forks(1, [&](int) { return thrown([&] { world.split(0, 0); }); });
  const std::string said = forks.said(0);
  EXPECT_TRUE(has(said, "usage: this process (pid ") && has(said, "is a fork")) << said;
}

}  // namespace
}  // namespace chorale::test
