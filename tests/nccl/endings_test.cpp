#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "executor/fibers/sanitizers.hpp"
#include "tests/nccl/ranks.hpp"

// These tests end communicators of libnccl.so.2: by shrinks, aborts, deaths, and calls that do not match.
namespace {

using namespace nccl_tests;

ncclComm_t shrunk(ncclComm_t from, std::vector<int> without, int flags = NCCL_SHRINK_DEFAULT) {
  ncclComm_t made{};
  EXPECT_EQ(ncclCommShrink(from, without.data(), int(without.size()), &made, nullptr, flags), ncclSuccess)
      << sentence();
  return made;
}

/// Expects that the communicator has a rank for each of `values`, and that this rank is one of them.
void expect_ranks(ncclComm_t comm, const std::vector<int>& values, int value) {
  ASSERT_NE(comm, nullptr);
  Ints all(values.size(), -1);
  Number mine(value);
  int ranks = -1;
  EXPECT_EQ(ncclCommCount(comm, &ranks), ncclSuccess);
  ASSERT_EQ(ranks, int(values.size()));
  EXPECT_EQ(ncclAllGather(mine.at(), all.data(), 1, ncclInt32, comm, nullptr), ncclSuccess) << sentence();
  settle();
  EXPECT_TRUE(std::equal(all.begin(), all.end(), values.begin(), values.end()))
      << testing::PrintToString(all);
}

/// Expects that an all-reduce of ones succeeds.
void expect_ones_summed(ncclComm_t comm, Ints& data, int ranks) {
  std::fill(data.begin(), data.end(), 1);
  EXPECT_EQ(ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, comm, nullptr),
            ncclSuccess)
      << sentence();
  settle();
  EXPECT_EQ(std::count(data.begin(), data.end(), ranks), int(data.size()));
}

/// Receives a number that rank `peer` never sends.
/// \returns how that has ended
ncclResult_t receive_in_vain(ncclComm_t comm, int peer) {
  Number number(0);
  return ended(ncclRecv(number.at(), 1, ncclInt32, peer, comm, nullptr), comm);
}

void expect_state(ncclComm_t comm, ncclResult_t expected) {
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  EXPECT_EQ(state, expected) << sentence();
}

/// Waits until the communicator has failed.
ncclResult_t failure_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess) {
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return state;
}

CHORALE_NCCL_TEST(NcclShrink, CanBeRepeated, 4)(ncclComm_t comm, int rank) {
  ncclComm_t first{}, second{}, reversed{};
  if (rank != 3) first = shrunk(comm, {3});
  if (rank != 0) second = shrunk(comm, {0});
  if (first) expect_ranks(first, {0, 1, 2}, rank);
  if (second) expect_ranks(second, {1, 2, 3}, rank);
  expect_ranks(comm, {0, 1, 2, 3}, rank);
  if (first && rank != 0) {
    const ncclComm_t of_first = shrunk(first, {0});
    expect_ranks(of_first, {1, 2}, rank);
    if (rank == 2) {
      const ncclComm_t alone = shrunk(of_first, {0});
      expect_ranks(alone, {2}, rank);
      EXPECT_EQ(ncclCommDestroy(alone), ncclSuccess);
    }
    EXPECT_EQ(ncclCommDestroy(of_first), ncclSuccess);
  }
  EXPECT_EQ(ncclCommSplit(comm, 7, -rank, &reversed, nullptr), ncclSuccess) << sentence();
  expect_ranks(reversed, {3, 2, 1, 0}, rank);
  for (int round = 0; round < 3 && rank != 3; ++round) {
    const ncclComm_t of_split = shrunk(reversed, {0});
    expect_ranks(of_split, {2, 1, 0}, rank);
    EXPECT_EQ(ncclCommDestroy(of_split), ncclSuccess);
  }
  for (const ncclComm_t made : {first, second, reversed}) {
    if (!made) continue;
    EXPECT_EQ(ncclCommDestroy(made), ncclSuccess);
  }
}

CHORALE_NCCL_TEST(NcclShrink, GoesOnAfterItHasAborted, 4)(ncclComm_t comm, int rank) {
  // An abort may also end a call whose data has arrived, so all ranks finish their calls before it.
  const auto all_are_through = [&] { expect_sum(comm, 1, 4); };
  ncclComm_t failed{};
  EXPECT_EQ(ncclCommSplit(comm, 0, rank, &failed, nullptr), ncclSuccess) << sentence();
  expect_ranks(failed, {0, 1, 2, 3}, rank);
  all_are_through();
  if (rank == 3) {
    EXPECT_EQ(receive_in_vain(failed, 0), ncclRemoteError);
    all_are_through();
  } else {
    const ncclComm_t three = shrunk(failed, {3}, NCCL_SHRINK_ABORT);
    expect_ranks(three, {0, 1, 2}, rank);
    expect_state(failed, ncclRemoteError);
    // The failed communicator can be shrunk once more, and so can the new one.
    const ncclComm_t again = shrunk(failed, {3}, NCCL_SHRINK_ABORT);
    expect_ranks(again, {0, 1, 2}, rank);
    all_are_through();
    EXPECT_EQ(ncclCommAbort(again), ncclSuccess);
    if (rank != 1) {
      const ncclComm_t two = shrunk(three, {1}, NCCL_SHRINK_ABORT);
      expect_ranks(two, {0, 2}, rank);
      EXPECT_EQ(ncclCommDestroy(two), ncclSuccess);
    }
    EXPECT_EQ(ncclCommAbort(three), ncclSuccess);
  }
  EXPECT_EQ(ncclCommAbort(failed), ncclSuccess);
}

/// A split that waits for a rank that never comes does not hold up a shrink that aborts.
CHORALE_NCCL_TEST(NcclShrink, EndsASplitThatWaits, 2)(ncclComm_t comm, int rank) {
  ncclComm_t parent{};
  EXPECT_EQ(ncclCommSplit(comm, 0, rank, &parent, nullptr), ncclSuccess) << sentence();
  if (rank == 0) {
    ncclConfig_t config = config_initializer;
    config.blocking = 0;
    ncclComm_t waiting{};
    EXPECT_EQ(ncclCommSplit(parent, 0, 0, &waiting, &config), ncclInProgress) << sentence();
    const ncclComm_t alone = shrunk(parent, {1}, NCCL_SHRINK_ABORT);
    expect_ranks(alone, {0}, 0);
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      EXPECT_EQ(ncclCommGetAsyncError(waiting, &state), ncclSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(state, ncclRemoteError);
    EXPECT_NE(sentence().find("ncclCommShrink() ended the communicator"), std::string::npos) << sentence();
    EXPECT_EQ(ncclCommAbort(waiting), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(alone), ncclSuccess);
  }
  expect_sum(comm, 1, 2);  // rank 1 lives until here
  EXPECT_EQ(ncclCommAbort(parent), ncclSuccess);
}

/// Counts what this process holds.
struct Held {
  size_t files, threads, maps, kilobytes;

  static Held now() {
    const auto entries = [](const char* folder) {
      return size_t(std::distance(std::filesystem::directory_iterator(folder), {}));
    };
    std::ifstream maps("/proc/self/maps"), sizes("/proc/self/statm");
    const auto lines = std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
    size_t all = 0, resident = 0;
    sizes >> all >> resident;
    return {entries("/proc/self/fd"), entries("/proc/self/task"), size_t(lines), resident * 4};
  }
};

/// Expects that repeated rounds do not leave more and more files, threads or memory. Each round allocates and
/// touches more than a megabyte that peers can access. There are fewer rounds on the fake GPUs, where a round
/// takes a tenth of a second.
void expect_nothing_kept(const std::function<void()>& round) {
  constexpr int rounds = on_gpus ? 40 : 200;
  const uint64_t used = used_memory();
  for (int times = 0; times < 20; ++times) round();
  // Communicators of GPUs are freed by threads of the library, which also hold files.
  EXPECT_EQ(used_memory_at_most(used), used);
  const Held before = Held::now();
  for (int times = 0; times < rounds; ++times) round();
  EXPECT_EQ(used_memory_at_most(used), used);
  Held after = Held::now();
  // The thread that ended a join may still close its files.
  const auto most = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while ((after.files > before.files || after.threads > before.threads) &&
         std::chrono::steady_clock::now() < most)
    after = Held::now();
  EXPECT_LE(after.files, before.files);
  EXPECT_LE(after.threads, before.threads);
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  // The sanitizer's allocator makes mappings too. A communicator of GPUs that was kept has dozens of them.
  EXPECT_LT(after.maps, before.maps + (on_gpus ? 4 * rounds : rounds / 2));
#else
  EXPECT_LT(after.maps, before.maps + rounds / 2);
  EXPECT_LT(after.kilobytes, before.kilobytes + 100 * rounds);
#endif
}

/// Makes all ranks of a communicator in threads, uses them, and aborts them.
void init_and_abort() {
  constexpr int ranks = 2, count = 1 << 16;
  const ncclUniqueId id = new_id();
  std::barrier through(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const ncclComm_t comm = joined(id, ranks, rank);
      Ints data(count);
      expect_ones_summed(comm, data, ranks);
      ncclGroupStart();
      ncclSend(data.data(), count / 2, ncclInt32, 1 - rank, comm, nullptr);
      ncclRecv(data.data() + count / 2, count / 2, ncclInt32, 1 - rank, comm, nullptr);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
      settle();
      through.arrive_and_wait();
      // The abort ends a call of the other rank, which then aborts too.
      if (rank == 1) {
        EXPECT_EQ(receive_in_vain(comm, 0), ncclRemoteError);
      }
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NcclAbort, KeepsNoMemoryFilesOrThreads) { expect_nothing_kept(init_and_abort); }

TEST(NcclAbortProcesses, KeepsNoMemoryFilesOrThreads) {
  in_processes(2, [](ncclComm_t comm, int rank) {
    expect_sum(comm, rank, 1);  // makes what the rounds use of this communicator
    expect_nothing_kept([&] {
      constexpr int count = 1 << 16;
      ncclComm_t made{};
      EXPECT_EQ(ncclCommSplit(comm, 0, 0, &made, nullptr), ncclSuccess) << sentence();
      Ints data(count);
      expect_ones_summed(made, data, 2);
      expect_sum(comm, rank, 1);  // both are through with the call
      if (rank == 1) {
        EXPECT_EQ(receive_in_vain(made, 0), ncclRemoteError);
      }
      EXPECT_EQ(ncclCommAbort(made), ncclSuccess);
    });
  });
}

/// A call may still run in the communicator when another thread aborts it.
TEST(NcclAbort, EndsTheCallsOfItsOwnRank) {
  for (int times = 0; times < 20; ++times) {
    std::vector<ncclComm_t> comms(2);
    ASSERT_EQ(ncclCommInitAll(comms.data(), 2, nullptr), ncclSuccess);
    std::atomic<bool> running = false;
    std::thread caller([&] {
      use_gpu(0);
      Number number(0);
      running = true;
      const ncclResult_t result = ncclRecv(number.at(), 1, ncclInt32, 1, comms[0], nullptr);
      // The abort may also come first, and then there is no such communicator. A GPU's call returns before it
      // has ended, and the thread then waits until the abort has ended the call.
      EXPECT_TRUE(result == ncclRemoteError || result == ncclInvalidArgument ||
                  (on_gpus && result == ncclSuccess))
          << result << sentence();
      settle();
    });
    while (!running) std::this_thread::yield();
    EXPECT_EQ(ncclCommAbort(comms[0]), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(comms[1]), ncclSuccess);
    caller.join();
  }
}

/// A rank that aborts leaves, so a shrink of the others does not wait for it.
TEST(NcclAbortProcesses, LetsTheOthersShrink) {
  in_processes(3, [](ncclComm_t comm, int rank) {
    ncclComm_t made{};
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &made, nullptr), ncclSuccess) << sentence();
    expect_ranks(made, {0, 1, 2}, rank);
    expect_sum(comm, 1, 3);  // all are through with the call
    if (rank != 2) {
      EXPECT_EQ(failure_of(made), ncclRemoteError);
      EXPECT_NE(sentence().find("rank 2 called ncclCommAbort()"), std::string::npos) << sentence();
    }
    // The shrink names only rank 0. It leaves out rank 2 because that rank has left. On GPUs a rank leaves
    // when nobody can reach its memory any more, so there the shrink has to name it.
    if (rank == 1) {
      const std::vector<int> without = on_gpus ? std::vector<int>{0, 2} : std::vector<int>{0};
      const ncclComm_t rest = shrunk(made, without, NCCL_SHRINK_ABORT);
      expect_ranks(rest, {1}, rank);
      EXPECT_EQ(ncclCommDestroy(rest), ncclSuccess);
    }
    EXPECT_EQ(ncclCommAbort(made), ncclSuccess);
    expect_sum(comm, 1, 3);  // rank 2 lives until here
  });
}

TEST(NcclProcesses, GoOnWhenARankIsKilledAmidCollectives) {
  const std::vector<int> ends = forked_with_id(4, [](const ncclUniqueId& id, int rank) {
    const ncclComm_t comm = joined(id, 4, rank);
    expect_sum(comm, 1, 4);
    std::atomic<int> calls = 0;
    std::thread killer;
    if (rank == 2) {
      killer = std::thread([&] {
        while (calls < 100) std::this_thread::yield();
        die();
      });
    }
    Ints data(5000);
    ncclResult_t result = ncclSuccess;
    while (result == ncclSuccess) {
      std::fill(data.begin(), data.end(), 1);
      result = ended(ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, comm, nullptr),
                     comm);
      if (result == ncclSuccess) {
        EXPECT_EQ(std::count(data.begin(), data.end(), 4), 5000);
      }
      ++calls;
    }
    EXPECT_EQ(result, ncclRemoteError);
    expect_state(comm, ncclRemoteError);
    EXPECT_NE(sentence().find("rank 2 (pid "), std::string::npos) << sentence();
    EXPECT_NE(sentence().find("died"), std::string::npos) << sentence();
    const ncclComm_t rest = shrunk(comm, {2}, NCCL_SHRINK_ABORT);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    expect_ranks(rest, {0, 1, 3}, rank);
    if (rank != 1) {
      const ncclComm_t ends = shrunk(rest, {1});
      expect_ranks(ends, {0, 3}, rank);
      EXPECT_EQ(ncclCommDestroy(ends), ncclSuccess);
    }
    EXPECT_EQ(ncclCommDestroy(rest), ncclSuccess);
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0, -SIGKILL, 0}));
}

/// Makes calls that do not match, after calls of the same shapes, so that no rank has to bind a plan.
using Mismatch = ncclResult_t (*)(ncclComm_t comm, int rank, Ints& data);
const Mismatch different_counts = [](ncclComm_t comm, int rank, Ints& data) {
  return ncclAllReduce(data.data(), data.data(), rank == 0 ? 64 : 1024, ncclInt32, ncclSum, comm, nullptr);
};
const Mismatch different_collectives = [](ncclComm_t comm, int rank, Ints& data) {
  return rank == 0 ? ncclBroadcast(data.data(), data.data(), 64, ncclInt32, 0, comm, nullptr)
                   : ncclAllReduce(data.data(), data.data(), 64, ncclInt32, ncclSum, comm, nullptr);
};
const Mismatch different_sizes = [](ncclComm_t comm, int rank, Ints& data) {
  return rank == 0 ? ncclSend(data.data(), 64, ncclInt32, 1, comm, nullptr)
                   : ncclRecv(data.data(), 1024, ncclInt32, 0, comm, nullptr);
};

/// Some mismatches end only when a wait has lasted this long.
constexpr const char* deadline = "10s";

void expect_mismatch(ncclComm_t comm, int rank, Mismatch calls) {
  Ints data(1024);
  for (const size_t count : {size_t(64), size_t(1024)})
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), count, ncclInt32, ncclSum, comm, nullptr), ncclSuccess)
        << sentence();
  EXPECT_EQ(ncclBroadcast(data.data(), data.data(), 64, ncclInt32, 0, comm, nullptr), ncclSuccess)
      << sentence();
  expect_sum(comm, 1, 2);
  // A rank that only sends may be through before the other one finds the mistake.
  ncclResult_t result = calls(comm, rank, data);
  if (result == ncclSuccess) result = failure_of(comm);
  EXPECT_TRUE(result == ncclRemoteError || result == ncclInvalidUsage) << result;
  EXPECT_NE(sentence(), "");
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

class NcclMismatch : public testing::TestWithParam<Mismatch> {};

TEST_P(NcclMismatch, OfBoundCallsFailsOnAllRanks) {
  const std::string timeout = std::getenv("CHORALE_TIMEOUT");
  setenv("CHORALE_TIMEOUT", deadline, 1);
  in_threads(2, [](ncclComm_t comm, int rank) {
    ncclComm_t made{};
    EXPECT_EQ(ncclCommSplit(comm, 0, rank, &made, nullptr), ncclSuccess);
    expect_mismatch(made, rank, GetParam());
  });
  setenv("CHORALE_TIMEOUT", timeout.c_str(), 1);
}

class NcclMismatchProcesses : public testing::TestWithParam<Mismatch> {};

TEST_P(NcclMismatchProcesses, OfBoundCallsFailsOnAllRanks) {
  const std::vector<int> ends = forked_with_id(2, [](const ncclUniqueId& id, int rank) {
    setenv("CHORALE_TIMEOUT", deadline, 1);
    const ncclComm_t comm = joined(id, 2, rank);
    expect_mismatch(comm, rank, GetParam());
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(ends, std::vector<int>(2, 0));
}

std::string name_of(const testing::TestParamInfo<Mismatch>& info) {
  return info.param == different_counts        ? "DifferentCounts"
         : info.param == different_collectives ? "DifferentCollectives"
                                               : "DifferentSizes";
}
INSTANTIATE_TEST_SUITE_P(All, NcclMismatch,
                         testing::Values(different_counts, different_collectives, different_sizes), name_of);
INSTANTIATE_TEST_SUITE_P(All, NcclMismatchProcesses,
                         testing::Values(different_counts, different_collectives, different_sizes), name_of);

/// Ranks simulate a group of calls that would fail or wait if it ran.
TEST(NcclSimulation, RunsNothingOfTheGroup) {
  in_threads(2, [](ncclComm_t comm, int rank) {
    Ints data(1000, rank + 1);
    ncclSimInfo_t information = simulation_initializer;
    information.estimatedTime = 17;
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), data.size() / size_t(rank + 1), ncclInt32, ncclSum,
                            comm, nullptr),
              ncclSuccess);
    EXPECT_EQ(ncclRecv(data.data(), 1, ncclInt32, 1 - rank, comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclGroupSimulateEnd(&information), ncclSuccess) << sentence();
    EXPECT_EQ(information.estimatedTime, -1.0f) << "unknown";
    EXPECT_EQ(std::count(data.begin(), data.end(), rank + 1), 1000);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "the group is over";
    expect_sum(comm, 1, 2);
    // A wrong call makes the group fail, as with ncclGroupEnd().
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(data.data(), 1, ncclInt32, 9, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupSimulateEnd(&information), ncclInvalidArgument);
    expect_sum(comm, 1, 2);
  });
  ncclComm_t comm = argument<ncclComm_t>(3);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&comm, 1, new_id(), 0), ncclSuccess);
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclInvalidUsage);
  EXPECT_NE(sentence().find("a group that makes communicators cannot be simulated"), std::string::npos)
      << sentence();
  EXPECT_EQ(comm, nullptr);
}

}  // namespace
