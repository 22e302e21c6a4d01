/// \file
/// Tests worlds over several hosts, which are processes of this machine that claim to share no memory.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <utility>

#include "chorale/window.hpp"
#include "chorale/world.hpp"
#include "processes.hpp"
#include "tests/free_port.hpp"
#include "tests/has.hpp"
#include "tools/shared.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;

/// Holds the name of each rank's host, by rank.
using Layout = std::vector<std::string>;

class Hosts : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(leftovers(), std::vector<std::string>()); }

  World join(const Layout& layout, int rank, std::chrono::nanoseconds timeout = 120s) const {
    return World::join(address, rank, int(layout.size()), {.timeout = timeout, .host = layout[size_t(rank)]});
  }

  /// Returns the results of a world's ranks.
  std::vector<std::string> said(const Layout& layout, const std::function<std::string(World&)>& body,
                                std::chrono::nanoseconds timeout = 120s) const {
    Processes ranks(int(layout.size()), [&](int rank) {
      World world = join(layout, rank, timeout);
      return body(world);
    });
    std::vector<std::string> all;
    for (size_t rank = 0; rank < layout.size(); ++rank) all.push_back(ranks.said(int(rank)));
    return all;
  }

  const std::string address = free_address();
  const std::vector<Layout> layouts = {{"a", "b"},
                                       {"a", "a", "b", "b"},
                                       {"a", "b", "a", "b"},
                                       {"a", "b", "c", "c", "b"},
                                       {"a", "b", "c", "d"}};
};

TEST_F(Hosts, AreNumberedByTheirLowestRanks) {
  for (const std::string& one : said({"x", "y", "x", "z", "y"}, [](World& world) {
         std::string hosts;
         for (int rank = 0; rank < 5; ++rank) hosts += std::to_string(world.host(rank));
         return hosts;
       }))
    EXPECT_EQ(one, "01021");
}

TEST_F(Hosts, BarriersAndAllgathersOfAnySize) {
  for (const Layout& layout : layouts) {
    const int n = int(layout.size());
    for (const std::string& one : said(layout, [n](World& world) -> std::string {
           for (int round = 0; round < 100; ++round) {
             if (round % 3 == 0) world.barrier();
             const int rank = world.rank();
             const auto all = world.allgather(
                 std::vector<std::byte>(size_t(rank * round * 97 % 20000), std::byte(rank + round)));
             for (int peer = 0; peer < n; ++peer) {
               if (all[size_t(peer)] !=
                   std::vector<std::byte>(size_t(peer * round * 97 % 20000), std::byte(peer + round)))
                 return "wrong";
             }
           }
           return "good";
         }))
      EXPECT_EQ(one, "good");
  }
}

TEST_F(Hosts, AnErrorOfOneRankIsThatOfAll) {
  for (const std::string& one : said(layouts[1], [](World& world) -> std::string {
         try {
           world.agree(world.rank() > 1 ? std::optional<std::string>("no room") : std::nullopt,
                       RunError::Reason::resources);
         } catch (const RunError& error) {
           world.barrier();
           return error.what();
         }
         return "no error";
       }))
    EXPECT_EQ(one, "rank 2: no room");
}

TEST_F(Hosts, OtherCollectivesAreAMismatchForAll) {
  for (const std::string& one : said(layouts[1], [](World& world) {
         world.rank() == 3 ? world.barrier() : void(world.allgather({}));
         return std::string("no error");
       }))
    EXPECT_TRUE(has(one, "mismatch: rank 0 is in an allgather, but rank 3 in a barrier")) << one;
}

/// Ranks abort at different moments and reset, and the next calls are right.
TEST_F(Hosts, AbortsAndResets) {
  for (const Layout& layout : layouts) {
    const int n = int(layout.size());
    for (const std::string& one : said(layout, [n](World& world) -> std::string {
           std::mt19937 random(unsigned(world.rank()));
           for (int round = 0; round < 60; ++round) {
             std::string why;
             try {
               if (world.rank() == round % n) {
                 if (round % 3 == 0) world.barrier();
                 world.abort("round " + std::to_string(round));
               }
               for (;;) {
                 if (random() % 4 == 0) std::this_thread::yield();
                 world.barrier();
               }
             } catch (const RunError& error) {
               why = error.what();
             }
             const std::string wanted =
                 "aborted by rank " + std::to_string(round % n) + ": round " + std::to_string(round);
             if (why != wanted) return why + " instead of " + wanted;
             world.reset();
             const auto all = world.allgather(std::vector<std::byte>(size_t(world.rank() + round)));
             for (int peer = 0; peer < n; ++peer) {
               if (all[size_t(peer)].size() != size_t(peer + round)) return "wrong after a reset";
             }
           }
           return "good";
         }))
      EXPECT_EQ(one, "good");
  }
}

TEST_F(Hosts, AResetOfAWorldThatWorks) {
  for (const std::string& one : said(layouts[3], [](World& world) -> std::string {
         for (int round = 0; round < 50; ++round) {
           world.barrier();
           if (round % 2) world.barrier();
           world.reset();
         }
         return std::to_string(world.resets());
       }))
    EXPECT_EQ(one, "50");
}

TEST_F(Hosts, WhoDoesNotComeIsNamed) {
  for (const std::string& one : said(
           layouts[1],
           [](World& world) -> std::string {
             if (world.rank() == 2) {
               try {
                 for (;;) {
                   world.check();
                   std::this_thread::sleep_for(1ms);
                 }
               } catch (const RunError& error) {
                 return error.what();
               }
             }
             try {
               world.barrier();
             } catch (const RunError& error) {
               return error.what();
             }
             return "no error";
           },
           1s))
    EXPECT_TRUE(has(one, "timed out: rank ") && has(one, "waited 1 s in a barrier for rank 2;")) << one;
}

TEST_F(Hosts, WhoHasLeftIsNamed) {
  // These are the lowest rank of a host, of rank 0's host, and one that does not connect for its host.
  for (const int leaver : {0, 2, 3}) {
    const auto all = said(layouts[1], [leaver](World& world) -> std::string {
      world.barrier();
      if (world.rank() == leaver) return "left";
      world.barrier();
      return "no error";
    });
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == leaver) continue;
      EXPECT_TRUE(
          has(all[size_t(rank)], "peer_lost: a barrier of rank " + std::to_string(rank) + " cannot end: ") &&
          has(all[size_t(rank)], std::to_string(leaver)) && has(all[size_t(rank)], " left the world"))
          << leaver << ": " << all[size_t(rank)];
    }
  }
}

TEST_F(Hosts, WhoDiesIsNamed) {
  const Layout layout = {"a", "a", "b", "b", "c"};
  for (const int victim : {0, 1, 2, 3, 4}) {
    const auto all = said(layout, [victim](World& world) -> std::string {
      world.barrier();
      if (world.rank() == victim) ::kill(getpid(), SIGKILL);
      for (;;) world.barrier();
    });
    for (int rank = 0; rank < 5; ++rank) {
      if (rank == victim) continue;
      const std::string& one = all[size_t(rank)];
      EXPECT_TRUE(has(one, "peer_lost: rank ") && has(one, " died")) << one;
      // For rank 0's host, the connections of all other hosts end there.
      EXPECT_TRUE(has(one, "rank " + std::to_string(victim) + " (")) << victim << ": " << one;
    }
  }
}

/// A fork has the connections of the one that dies, unless they are closed there.
TEST_F(Hosts, WhoDiesIsNamedAlsoIfAForkOfItLives) {
  for (const int victim : {0, 1}) {
    const tools::Shared<std::atomic<int>> over(1);
    Processes ranks(2, [&](int rank) -> std::string {
      World world = join({"a", "b"}, rank, 10s);
      world.barrier();
      if (rank == victim) {
        if (fork() == 0) {
          for (int looks = 0; looks < 60000 && over[0] == 0; ++looks) std::this_thread::sleep_for(1ms);
          _exit(0);
        }
        ::kill(getpid(), SIGKILL);
      }
      for (;;) world.barrier();
    });
    const std::string said = ranks.said(1 - victim);
    EXPECT_TRUE(has(said, "peer_lost: rank " + std::to_string(victim) + " (")) << said;
    over[0] = 1;
  }
}

TEST_F(Hosts, AForkThatEndsDoesNotSayGoodbye) {
  for (const std::string& one : said({"a", "b"}, [](World& world) -> std::string {
         world.barrier();
         if (const pid_t child = fork(); child == 0) {
           { const World gone = std::move(world); }
           _exit(0);
         } else {
           waitpid(child, nullptr, 0);
         }
         for (int round = 0; round < 20; ++round) world.barrier();
         return "good";
       }))
    EXPECT_EQ(one, "good");
}

TEST_F(Hosts, AWorldEndsInAnyOrder) {
  for (const std::string& one : said(layouts[3], [](World& world) -> std::string {
         for (int round = 0; round < 20; ++round) world.barrier();
         std::this_thread::sleep_for(std::chrono::milliseconds(3 * ((world.rank() * 7) % 5)));
         world.check();
         return "good";
       }))
    EXPECT_EQ(one, "good");
}

TEST_F(Hosts, ManyWorldsOneAfterTheOther) {
  Processes ranks(3, [&](int rank) -> std::string {
    for (int times = 0; times < 20; ++times) {
      World world = join({"a", "b", "b"}, rank);
      world.barrier();
    }
    return "good";
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "good");
}

TEST_F(Hosts, MemoryOfAnotherHostHasASizeAndNoAddress) {
  for (const std::string& one : said(layouts[2], [](World& world) -> std::string {
         const Window window = Window::create(world, 100 + uint64_t(world.rank()));
         for (int peer = 0; peer < 4; ++peer) {
           if (window.bytes(peer) != 100 + uint64_t(peer)) return "other sizes";
           if ((window.at(peer) != nullptr) != (world.host(peer) == world.host(world.rank())))
             return "other addresses";
         }
         window.local()[0] = std::byte(world.rank());
         world.barrier();
         const int near = (world.rank() + 2) % 4;
         return window.at(near)[0] == std::byte(near) ? "good" : "other memory";
       }))
    EXPECT_EQ(one, "good");
}

TEST_F(Hosts, WhatIsOfOneHostSaysSo) {
  for (const std::string& one : said(layouts[0], [](World& world) -> std::string {
         try {
           world.survivors();
         } catch (const UsageError& error) {
           return error.what();
         }
         return "no error";
       }))
    EXPECT_TRUE(has(one, "survivors() is for worlds of one host")) << one;
  EXPECT_THROW(World::join(address, 0, 1, {.host = "a\nb"}), UsageError);
  try {
    World::join("shm://x", 0, 1, {.host = "a"});
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_TRUE(has(error.what(), "JoinOptions::host ('a')")) << error.what();
  }
}

}  // namespace
}  // namespace chorale::test
