#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "../../../executor/fibers/sanitizers.hpp"
#include "../../../executor/system/host_pages.hpp"
#include "../../../executor/world/collective_try.hpp"
#include "../../../executor/world/group.hpp"
#include "../fibers/scheduler_under_test.hpp"
#include "chorale/window.hpp"
#include "processes.hpp"
#include "tests/has.hpp"
#include "tests/unit/scarce_memory.hpp"
#include "tests/unit/thrown.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using Reason = RunError::Reason;

/// Returns options without a seed, and with several seeds.
std::vector<LocalOptions> both_kinds() {
  std::vector<LocalOptions> kinds(1);
  for (uint64_t seed = 0; seed < 5; ++seed) kinds.push_back({.seed = seed});
  return kinds;
}

/// Runs `body` and returns its error.
std::string failure(const std::function<void()>& body) {
  try {
    body();
  } catch (const RunError& error) {
    return std::string(name(error.reason)) + ": " + error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

TEST(LocalWorld, BarriersAndAllgathersOfAnySize) {
  for (const LocalOptions& options : both_kinds()) {
    int good = 0;
    std::mutex mutex;
    run_local(
        6,
        [&](World& world) {
          for (int round = 0; round < 30; ++round) {
            const auto size = [&](int rank) { return size_t(rank * round * 97 % 20000); };
            const std::vector<std::byte> mine(size(world.rank()), std::byte(world.rank() + round));
            const auto all = world.allgather(mine);
            for (int peer = 0; peer < 6; ++peer) {
              EXPECT_EQ(all[peer], std::vector<std::byte>(size(peer), std::byte(peer + round)));
            }
            world.barrier();
          }
          std::lock_guard guard(mutex);
          ++good;
        },
        options);
    EXPECT_EQ(good, 6);
  }
}

TEST(LocalWorld, HandlesOnThreadsOfOnesOwn) {
  std::vector<World> worlds = World::local(3);
  std::vector<std::jthread> threads;
  for (World& world : worlds) {
    threads.emplace_back([&world] {
      EXPECT_EQ(world.ranks(), 3);
      world.barrier();
    });
  }
}

TEST(LocalWorld, AMissingRankIsNamed) {
  const std::string said = failure([] {
    run_local(4,
              [](World& world) {
                if (world.rank() != 2) world.barrier();
                while (load_acquire(&world.abort_word()->stop) == 0) std::this_thread::sleep_for(1ms);
              },
              {.timeout = 2s});
  });
  EXPECT_NE(said.find("timed_out: timed out: rank "), std::string::npos) << said;
  EXPECT_NE(
      said.find("waited 2 s in a barrier for rank 2; if it only takes longer, make the world with a longer "
                "timeout"),
      std::string::npos)
      << said;
}

/// The ranks that have a thread would wait for the others without end.
TEST(LocalWorld, RanksThatCannotHaveAThreadEndIt) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  Processes process(1, [](int) -> std::string {
    const ScarceMemory scarce(100);  // enough for some of them
    run_local(64, [](World& world) { world.barrier(); }, {.timeout = 0ns});
    return "all had one";
  });
  const std::string said = process.said(0);
  EXPECT_EQ(said.find("resources: no thread for a rank: "), 0u) << said;
}

TEST(LocalWorld, OneThatLeftIsNotWaitedFor) {
  for (const LocalOptions& options : both_kinds()) {
    const std::string said = failure([&] {
      run_local(
          3,
          [](World& world) {
            if (world.rank() != 1) world.barrier();
          },
          options);
    });
    // Either of the two waiting ranks may notice first, and aborts the world.
    EXPECT_NE(said.find("cannot end: rank 1 left the world"), std::string::npos) << said;
  }
}

TEST(LocalWorld, AgreeThrowsTheLowestRanksMessageEverywhere) {
  for (const LocalOptions& options : both_kinds()) {
    run_local(
        4,
        [](World& world) {
          world.agree(std::nullopt);
          std::optional<std::string> error;
          if (world.rank() >= 2) error = "no memory " + std::to_string(world.rank());
          EXPECT_EQ(failure([&] { world.agree(error, Reason::resources); }),
                    "resources: rank 2: no memory 2");
          world.agree(std::nullopt);
        },
        options);
  }
}

TEST(LocalWorld, WhateverAStepThrowsIsHeardEverywhere) {
  const struct {
    std::function<void()> step;
    const char *of_it, *of_others;
  } cases[] = {
      {[] { throw RunError(Reason::peer_lost, "gone"); }, "peer_lost: rank 1: gone",
       "peer_lost: rank 1: gone"},
      {[] { throw std::bad_alloc(); }, "resources: rank 1: out of memory",
       "resources: rank 1: out of memory"},
      {[] { throw std::system_error(EAGAIN, std::generic_category()); },
       "other: rank 1: Resource temporarily unavailable", "other: rank 1: Resource temporarily unavailable"},
      {[] { throw 1; }, "other: rank 1: an exception that is no std::exception",
       "other: rank 1: an exception that is no std::exception"},
      {[] { throw UsageError("7 is too much"); }, "7 is too much", "other: rank 1: 7 is too much"},
  };
  for (const LocalOptions& options : both_kinds()) {
    run_local(
        2,
        [&](World& world) {
          for (const auto& one : cases) {
            const bool mine = world.rank() == 1;
            EXPECT_EQ(failure([&] {
                        world::collective_try(world, [&] {
                          if (mine) one.step();
                        });
                      }),
                      mine ? one.of_it : one.of_others);
          }
          world::collective_try(world, [] {});
        },
        options);
  }
}

// One call must not read the other one's data as an answer, and the world must stay usable.
TEST(LocalWorld, DifferentCallsAreToldApart) {
  const std::string remedy = ": all ranks have to make the same collective calls in the same order";
  for (const LocalOptions& options : both_kinds()) {
    run_local(
        3,
        [&](World& world) {
          const bool odd = world.rank() == 1;
          EXPECT_EQ(failure([&] {
                      if (odd) return world.barrier();
                      world.allgather({});
                    }),
                    "mismatch: rank 0 is in an allgather, but rank 1 in a barrier" + remedy);
          EXPECT_EQ(failure([&] { odd ? world.agree(std::nullopt) : world.barrier(); }),
                    "mismatch: rank 0 is in a barrier, but rank 1 in an agreement" + remedy);
          // A rank that makes a window first agrees on whether there is memory.
          EXPECT_EQ(failure([&] {
                      if (!odd) Window::create(world, 64);
                      world.agree(std::nullopt);
                      world.barrier();
                    }),
                    "mismatch: rank 0 is in the making of a window, but rank 1 in a barrier" + remedy);
          // A rank with less to send takes part as often as the others.
          EXPECT_EQ(failure([&] {
                      const std::vector<std::byte> much(odd ? 0 : 5000);
                      world.allgather(much);
                    }),
                    "none");
          world.barrier();
        },
        options);
  }
}

TEST(LocalWorld, AnExceptionOfABodyIsRethrownNotItsEcho) {
  for (const LocalOptions& options : both_kinds()) {
    const std::string said = failure([&] {
      run_local(
          3,
          [](World& world) {
            if (world.rank() == 2) throw std::runtime_error("mine");
            world.barrier();
          },
          options);
    });
    EXPECT_EQ(said, "mine");
  }
}

TEST(LocalWorld, AbortFromAnotherThreadAndReset) {
  for (int times = 0; times < 20; ++times) {
    std::vector<World> worlds = World::local(3);
    std::vector<std::jthread> threads;
    for (World& world : worlds) {
      threads.emplace_back([&world] {
        for (int round = 0; round < 3; ++round) {
          EXPECT_EQ(failure([&] {
                      for (;;) world.barrier();
                    }),
                    "aborted: aborted by rank 1: enough");
          EXPECT_EQ(failure([&] { world.check(); }), "aborted: aborted by rank 1: enough");
          world.reset();
        }
      });
    }
    for (int round = 0; round < 3; ++round) {
      worlds[1].abort("enough");
      while (load_acquire(&worlds[1].abort_word()->stop) != 0)
        std::this_thread::yield();  // until all have reset
    }
  }
}

TEST(LocalWorld, AResetForgetsThoseWhoHadArrived) {
  for (const LocalOptions& options : both_kinds()) {
    run_local(
        3,
        [](World& world) {
          for (int round = 0; round < 10; ++round) {
            if (world.rank() == round % 3) world.abort("now");
            EXPECT_NE(failure([&] {
                        for (;;) world.barrier();
                      }),
                      "none");
            world.reset();
            const int value = world.rank() * 100 + round;
            const auto all = world.allgather(std::as_bytes(std::span(&value, 1)));
            for (int peer = 0; peer < 3; ++peer) {
              int seen = -1;
              std::memcpy(&seen, all[peer].data(), std::min(all[peer].size(), sizeof seen));
              EXPECT_EQ(seen, peer * 100 + round);
            }
            world.barrier();
          }
        },
        options);
  }
}

/// A peer that was counted before, and gave up, does not count any more.
TEST(LocalWorld, AResetThatTimedOutDoesNotStandForTheNext) {
  std::vector<World> worlds = World::local(2, {.timeout = 200ms});
  worlds[0].abort("stopped");
  for (int time = 0; time < 3; ++time)
    EXPECT_EQ(failure([&] { worlds[0].reset(); }).find(name(Reason::timed_out)), 0u);
  // It is alone here as well: rank 0 has been counted.
  EXPECT_EQ(failure([&] { worlds[1].reset(); }).find(name(Reason::timed_out)), 0u);
  std::vector<std::jthread> threads;
  for (World& world : worlds) {
    threads.emplace_back([&world] {
      std::string said;  // slow machines may need more than one time
      for (int time = 0; time < 20 && said != "none"; ++time) {
        said = failure([&] {
          world.reset();
          world.barrier();
        });
      }
      EXPECT_EQ(said, "none");
    });
  }
}

TEST(LocalWorld, ALaunchAgainstABarrierIsADeadlock) {
  for (const LocalOptions& options : both_kinds()) {
    LocalOptions without_timeout = options;
    without_timeout.timeout = 0s;
    const std::string said = failure([&] {
      run_local(
          2,
          [](World& world) {
            const uint64_t never = 0;
            if (world.rank() == 0) {
              world.scheduler().launch(0, 1, [&](int, fibers::BlockHost& host) { await(host, &never, 1); });
              world.check();
            } else {
              world.barrier();
            }
          },
          without_timeout);
    });
    EXPECT_EQ(said.substr(0, 20), "deadlock: deadlock: ") << said;
  }
}

TEST(LocalWorld, BarriersInADifferentNumberAreFoundFromASeed) {
  const std::string said = failure([] {
    run_local(2,
              [](World& world) {
                const uint64_t never = 0;
                if (world.rank() == 0) world.barrier();
                world.scheduler().launch(world.rank(), 1,
                                         [&](int, fibers::BlockHost& host) { await(host, &never, 1); });
                world.check();
              },
              {.seed = 1, .timeout = 0s});
  });
  EXPECT_EQ(said.substr(0, 20), "deadlock: deadlock: ") << said;
}

/// Returns the order in which four ranks and their blocks go through their steps.
std::vector<int> order(uint64_t seed) {
  std::vector<int> passed;
  run_local(4,
            [&](World& world) {
              for (int launch = 0; launch < 2; ++launch) {
                world.scheduler().launch(world.rank(), 2, [&](int block, fibers::BlockHost& host) {
                  for (int step = 0; step < 3; ++step) {
                    passed.push_back(world.rank() * 10 + block);
                    host.step();
                  }
                });
                passed.push_back(world.rank() * 10 + 9);
                world.barrier();
              }
            },
            {.seed = seed});
  return passed;
}

TEST(LocalWorld, ASeedRepeatsItsOrder) {
  const std::vector<int> first = order(7);
  EXPECT_EQ(first.size(), 4u * 2 * 7);
  for (int times = 0; times < 100; ++times) EXPECT_EQ(order(7), first);
  int same = 0;
  for (uint64_t seed = 100; seed < 200; ++seed) same += order(seed) == first;
  EXPECT_EQ(same, 0);
}

TEST(LocalWorld, ResetFirstAsksAllWhoWantToKnow) {
  std::vector<World> worlds = World::local(1);
  World& world = worlds[0];
  int one = 0, other = 0;
  world.group().before_reset(0, &one, [&] { ++one; });
  world.group().before_reset(0, &other, [&] { ++other; });
  world.abort("to be taken back");
  world.reset();
  EXPECT_EQ(one, 1);
  EXPECT_EQ(other, 1);
  world.group().before_reset(0, &one, {});
  world.reset();
  EXPECT_EQ(one, 1);
  EXPECT_EQ(other, 2);
}

/// Peers are in the reset by then, and are notified.
TEST(LocalWorld, AResetThatFailsOnOneRankEndsOnAll) {
  std::string said[2];
  run_local(2, [&](World& world) {
    int who = 0;
    const int rank = world.rank();
    if (rank == 1)
      world.group().before_reset(1, &who, [] { throw RunError(RunError::Reason::resources, "no device"); });
    said[rank] = thrown([&] { world.reset(); });
    EXPECT_TRUE(has(thrown([&] { world.check(); }), "rank 1 could not be reset: no device"));
    if (rank == 1) world.group().before_reset(1, &who, {});
    world.reset();
    world.barrier();
  });
  EXPECT_EQ(said[0], "resources: rank 1 could not be reset: no device");
  EXPECT_EQ(said[1], "resources: no device");
}

TEST(LocalWorld, WindowsAreSharedAndOutliveTheirOwnersHandle) {
  for (const LocalOptions& options : both_kinds()) {
    run_local(
        3,
        [](World& world) {
          Window window = Window::create(world, uint64_t(world.rank()) * 5000);
          EXPECT_EQ(window.bytes(0), 0u);
          EXPECT_EQ(window.at(0), nullptr);
          EXPECT_EQ(window.bytes(2), 10000u);
          EXPECT_EQ(reinterpret_cast<uintptr_t>(window.at(2)) % 4096, 0u);
          EXPECT_EQ(window.at(2)[9999], std::byte(0));
          world.barrier();
          if (world.rank() == 2) return;  // this drops its handle
          window.at(2)[world.rank()] = std::byte(1);
        },
        options);
  }
}

/// CUDA registers pages, and refuses copies of memory that is only partly registered.
TEST(LocalWorld, WindowsShareNoPageWithOtherMemory) {
  run_local(1, [](World& world) {
    for (const uint64_t bytes : {1, 128, 4096, 5000}) {
      const Window window = Window::create(world, bytes);
      const auto first = reinterpret_cast<uintptr_t>(window.local()),
                 end = (first + bytes + page_bytes() - 1) / page_bytes() * page_bytes();
      std::vector<std::unique_ptr<char[]>> beside;  // where a heap puts the next allocations
      for (int block = 0; block < 500; ++block) {
        beside.push_back(std::make_unique<char[]>(40));
        const auto at = reinterpret_cast<uintptr_t>(beside.back().get());
        EXPECT_FALSE(at < end && at + 40 > first) << bytes << " bytes";
      }
    }
  });
}

/// Some ranks leave a creation that others are still in. Freed memory does not keep its contents.
TEST(LocalWorld, AStopWhileWindowsAreMadeLeavesNobodyWithFreedMemory) {
  const struct Perturbed {
    Perturbed() { mallopt(M_PERTURB, 0xa5); }
    ~Perturbed() { mallopt(M_PERTURB, 0); }
  } perturbed;
  for (int pause = 0; pause < 200; ++pause) {
    run_local(8, [&](World& world) {
      std::jthread stopper;
      if (world.rank() == 0) {
        stopper = std::jthread([&] {
          std::this_thread::sleep_for(pause * 10us);
          world.abort("enough");
        });
      }
      EXPECT_THROW(
          {
            for (;;) *Window::create(world, 64).local() = std::byte{1};
          },
          RunError);
    });
  }
}

TEST(LocalWorld, ATooLargeWindowFailsOnAllRanks) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "the sanitizer's calloc ends the process where others return null";
#endif
  run_local(2, [](World& world) {
    const std::string said =
        failure([&] { Window::create(world, world.rank() == 1 ? ~uint64_t(0) / 2 : 16); });
    EXPECT_NE(said.find("resources: rank 1: a window takes 9223372036854775807 bytes"), std::string::npos)
        << said;
    world.barrier();
  });
}

TEST(LocalWorld, ManyWorldsLeaveNothingBehind) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  for (int times = 0; times < 1000; ++times) run_local(2, [](World& world) { Window::create(world, 100); });
  EXPECT_EQ(descriptors(), before);
}

TEST(LocalWorld, WrongCallsAreRefused) {
  EXPECT_THROW(World::local(0), UsageError);
  EXPECT_THROW(World::local(2, {.seed = 1}), UsageError);
  EXPECT_THROW(run_local(0, [](World&) {}), UsageError);
  EXPECT_EQ(failure([] { World::local(2147483647); }),
            "a world of 2147483647 ranks: it can have at most 65536");
  EXPECT_EQ(failure([] { run_local(65537, [](World&) {}); }),
            "a world of 65537 ranks: it can have at most 65536");
  EXPECT_EQ(failure([] { run_local(2, nullptr); }), "run_local(): the body is an empty function");
  const std::string negative =
      "LocalOptions::timeout is -2000000000 ns: it should be above 0, or 0 for waits without a limit";
  EXPECT_EQ(failure([] { World::local(2, {.timeout = -2s}); }), negative);
  EXPECT_EQ(failure([] { run_local(2, [](World&) {}, {.timeout = -2s}); }), negative);
}

/// There is as much space as on the stack of a thread, which a rank has without a seed.
TEST(LocalWorld, ASeedLeavesRoomForLocalVariables) {
  const char* others[3];
  run_local(3,
            [&](World& world) {
              char large[6 << 20];
              for (char& one : large) one = char(world.rank());
              others[world.rank()] = large;
              world.barrier();
              const int next = (world.rank() + 1) % 3;
              EXPECT_EQ(std::count(others[next], others[next] + sizeof large, char(next)), 6 << 20);
              world.barrier();
            },
            {.seed = 7});
}

/// Ranks are fibers of one thread. Another thread has no fiber to return to.
TEST(LocalWorld, WithASeedOtherThreadsAreRefusedAndHarmNothing) {
  run_local(2,
            [](World& world) {
              const auto refused = [&](const std::function<void()>& call) {
                std::string said;
                std::thread([&] { said = failure(call); }).join();
                EXPECT_EQ(
                    said.find("a world with a seed was used by a thread other than that of run_local(): "),
                    0u)
                    << said;
              };
              refused([&] { world.barrier(); });
              refused([&] { world.allgather({}); });
              refused([&] { world.reset(); });
              refused([&] { world.survivors(); });
              refused([&] { world.scheduler().launch(world.rank(), 1, [](int, fibers::BlockHost&) {}); });
              EXPECT_EQ(world.allgather(std::vector<std::byte>(5)).size(), 2u);
              if (world.rank() == 0) std::thread([&] { world.abort("enough"); }).join();
              EXPECT_EQ(failure([&] { world.barrier(); }), "aborted: aborted by rank 0: enough");
            },
            {.seed = 7});
}

TEST(LocalWorld, WithASeedTheHandleIsOfNoUseAfterwards) {
  std::vector<World> kept;
  run_local(2, [&](World& world) { kept.push_back(std::move(world)); }, {.seed = 7});
  for (World& world : kept) {
    const std::string said = failure([&] { world.barrier(); });
    EXPECT_EQ(said.find("a world with a seed was used when run_local() had returned: "), 0u) << said;
  }
}

TEST(LocalWorld, WithASeedBlocksCannotWaitForRanks) {
  const std::string said = failure([] {
    run_local(1,
              [](World& world) {
                world.scheduler().launch(0, 1, [&](int, fibers::BlockHost&) { world.barrier(); });
              },
              {.seed = 7});
  });
  EXPECT_EQ(said, "none") << "one rank has nobody to wait for";
  const std::string two = failure([] {
    run_local(2,
              [](World& world) {
                world.scheduler().launch(world.rank(), 1, [&](int, fibers::BlockHost&) { world.barrier(); });
              },
              {.seed = 7});
  });
  EXPECT_EQ(two.find("a thread block made a collective call of the world: "), 0u) << two;
}

}  // namespace
}  // namespace chorale::test
