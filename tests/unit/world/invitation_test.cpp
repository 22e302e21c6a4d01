/// \file
/// Tests World::join() with an Invitation.

#include "chorale/invitation.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "chorale/window.hpp"
#include "chorale/world.hpp"
#include "maker.hpp"
#include "processes.hpp"
#include "tests/has.hpp"
#include "tests/unit/thrown.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;

/// Returns "good <local>" if the world works.
std::string use(World& world) {
  const auto all = world.allgather(std::vector<std::byte>(size_t(world.rank() + 1)));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != rank + 1) return "wrong";
  }
  Window window = Window::create(world, 4096);
  *window.at((world.rank() + 1) % world.ranks()) = std::byte(7);
  world.barrier();
  if (*window.local() != std::byte(7)) return "no window";
  return world.local() ? "good local" : "good";
}

/// Runs threads, and returns what each said or threw.
std::vector<std::string> of_threads(int threads, const std::function<std::string(int)>& body) {
  std::vector<std::string> said(static_cast<size_t>(threads));
  std::vector<std::jthread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      const std::string error = thrown([&] { said[size_t(thread)] = body(thread); });
      if (error != "nothing") said[size_t(thread)] = error;
    });
  }
  all.clear();
  return said;
}

class Invited : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(leftovers(), std::vector<std::string>()); }

  World join(int rank, int ranks, std::chrono::nanoseconds timeout = 120s) const {
    return World::join(maker.invitation(), rank, ranks, {.timeout = timeout});
  }

  const Maker maker;
};

TEST_F(Invited, ProcessesMeetInAnyOrder) {
  for (const int number : {2, 4}) {
    const Maker one;
    Processes ranks(0, {});
    const auto body = [&](int rank) {
      if (rank == 0) std::this_thread::sleep_for(100ms);  // the others come first
      World world = World::join(one.invitation(), rank, number);
      return use(world);
    };
    for (int rank = 0; rank < number; ++rank) ranks.spawn(rank, body);
    for (int rank = 0; rank < number; ++rank) EXPECT_EQ(ranks.said(rank), "good");
  }
}

TEST_F(Invited, OneRankMeetsItself) {
  World world = join(0, 1);
  EXPECT_EQ(use(world), "good local");
}

TEST_F(Invited, ARankMayMakeIt) {
  const tools::Shared<std::array<std::byte, Invitation::bytes>> shared(1);
  const tools::Shared<std::atomic<int>> ready(1);
  Processes ranks(3, [&](int rank) {
    if (rank == 1) {
      shared[0] = Invitation::make().encode();
      ready[0] = 1;
    }
    while (ready[0] == 0) std::this_thread::sleep_for(1ms);
    World world = World::join(*Invitation::decode(shared[0]), rank, 3);
    return use(world);
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

TEST_F(Invited, ThreadsOfOneProcessGetALocalWorld) {
  const auto said = of_threads(4, [&](int rank) -> std::string {
    World world = World::join(maker.invitation(), rank, 4, {.workers = 2, .timeout = 77s});
    if (world.timeout() != 77s || world.ranks() != 4 || world.rank() != rank) return "another world";
    return use(world);
  });
  EXPECT_EQ(said, std::vector<std::string>(4, "good local"));
}

/// Each invitation makes a world of its own.
TEST_F(Invited, SeveralWorldsOfOneProcessAtATime) {
  const Maker other;
  const auto said = of_threads(4, [&](int thread) {
    const Maker& mine = thread < 2 ? maker : other;
    World world = World::join(mine.invitation(), thread % 2, 2);
    return use(world);
  });
  EXPECT_EQ(said, std::vector<std::string>(4, "good local"));
}

TEST_F(Invited, SomeThreadsAndSomeProcessesAreRefused) {
  Processes ranks(2, [&](int process) -> std::string {
    if (process == 1) {
      World world = join(3, 4);
      return "joined";
    }
    const auto said = of_threads(3, [&](int rank) -> std::string {
      World world = join(rank, 4);
      return "joined";
    });
    return said[0] == said[1] && said[0] == said[2] ? said[0] : said[0] + "|" + said[1] + "|" + said[2];
  });
  const pid_t pid = ranks.pid(0);
  for (int process = 0; process < 2; ++process) {
    const std::string said = ranks.said(process);
    EXPECT_TRUE(said.starts_with("mismatch: pid " + std::to_string(pid)) &&
                has(said,
                    " has ranks 0, 1, 2 of 4: either all ranks are threads of one process, or each is a "
                    "process of its own"))
        << said;
  }
}

TEST_F(Invited, RanksOfSeveralHostsAreRefused) {
  Processes ranks(2, [&](int rank) -> std::string {
    World world =
        World::join(maker.invitation(), rank, 2, {.timeout = 120s, .host = "h" + std::to_string(rank)});
    return "joined";
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(
        ranks.said(rank),
        "mismatch: rank 0 is on host h0 and rank 1 on host h1: an invitation makes a world of one host; "
        "ranks of several hosts join at tcp://host:port");
  }
}

TEST_F(Invited, DifferentNumbersOfRanksAreRefused) {
  Processes ranks(2, [&](int rank) -> std::string {
    World world = join(rank, 3 - rank);
    return "joined";
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    // Either rank may come first.
    EXPECT_TRUE(has(said, "mismatch: rank 1 (pid ") || has(said, "mismatch: rank 0 (pid ")) << said;
    EXPECT_TRUE(has(said, ") says that the invitation's world has ")) << said;
    EXPECT_TRUE(has(said, " ranks, but rank ")) << said;
  }
}

TEST_F(Invited, ARankThatComesTwiceIsRefused) {
  Processes ranks(3, [&](int process) -> std::string {
    World world = join(process == 2 ? 1 : process, 3);
    return "joined";
  });
  for (int process = 0; process < 3; ++process) {
    const std::string said = ranks.said(process);
    EXPECT_TRUE(has(said, "mismatch: rank 1 of the invitation's world came twice, from pid ") &&
                has(said, ": each rank joins once, and an invitation serves one world"))
        << said;
  }
}

TEST_F(Invited, ItServesOneWorld) {
  const auto body = [&](int rank) -> std::string {
    World world = join(rank, 2, 0s);
    return use(world);
  };
  Processes ranks(2, body);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.said(rank), "good");
  Processes again(2, body);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = again.said(rank);
    EXPECT_TRUE(has(said, "mismatch: rank " + std::to_string(rank) +
                              " cannot join by its invitation: the invitation has already been used, or "))
        << said;
  }
}

/// Rank 3 comes when the others have failed, and gets their error.
TEST_F(Invited, ATimeOutNamesTheMissingRanks) {
  const auto body = [&](int rank) -> std::string {
    World world = join(rank, 4, rank == 1 ? 1s : 120s);
    return "joined";
  };
  Processes ranks(2, body);
  const std::string wanted =
      "timed_out: ranks 2, 3 did not join the invitation's world within 1 s, says "
      "rank 1: give all ranks one invitation; ";
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, wanted)) << said;
  }
  ranks.spawn(3, body);
  const std::string said = ranks.said(2);
  EXPECT_TRUE(has(said, wanted)) << said;
}

TEST_F(Invited, AbortsAndDeathsWorkAsInOtherWorlds) {
  Processes ranks(3, [&](int rank) -> std::string {
    World world = join(rank, 3);
    world.barrier();
    if (rank == 2) ::kill(getpid(), SIGKILL);
    const std::string said = thrown([&] {
      for (;;) world.barrier();
    });
    World next = world.survivors();
    return said + "|" + use(next);
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "peer_lost: rank 2 (pid ") && said.ends_with("|good")) << said;
  }
}

TEST_F(Invited, WrongArgumentsAreNamed) {
  EXPECT_EQ(thrown([&] { join(2, 2); }),
            "usage: rank 2 of 2 ranks: a rank is at least 0 and less than their number");
  EXPECT_TRUE(has(thrown([&] { join(0, 1, -1ns); }), "usage: JoinOptions::timeout is -1 ns"));
  World world = join(0, 1);  // the wrong calls have not used it
  EXPECT_EQ(use(world), "good local");
}

}  // namespace
}  // namespace chorale::test
