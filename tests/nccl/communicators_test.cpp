#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "tests/nccl/ranks.hpp"

// These tests make, split and end communicators of libnccl.so.2.
namespace {

using namespace nccl_tests;

TEST(NcclCommunicators, KnowTheirRanks) {
  in_threads(3, [](ncclComm_t comm, int rank) {
    int number = -1;
    EXPECT_EQ(ncclCommCount(comm, &number), ncclSuccess);
    EXPECT_EQ(number, 3);
    EXPECT_EQ(ncclCommUserRank(comm, &number), ncclSuccess);
    EXPECT_EQ(number, rank);
    EXPECT_EQ(ncclCommCuDevice(comm, &number), ncclSuccess);
    EXPECT_EQ(number, on_gpus ? rank : 0);
    ncclResult_t state = ncclInProgress;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
  });
}

TEST(NcclCommunicators, OneThreadRunsAllRanksInGroups) {
  constexpr int ranks = 4;
  std::vector<ncclComm_t> comms(ranks);
  ASSERT_EQ(ncclCommInitAll(comms.data(), ranks, nullptr), ncclSuccess) << sentence();
  for (int round = 0; round < 3; ++round) {
    std::deque<Number> in, out;
    for (int rank = 0; rank < ranks; ++rank) {
      use_gpu(rank);
      in.emplace_back(rank + round);
      out.emplace_back(-1);
    }
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(ncclAllReduce(in[size_t(rank)].at(), out[size_t(rank)].at(), 1, ncclInt32, ncclSum,
                              comms[size_t(rank)], nullptr),
                ncclSuccess);
    }
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
    settle_all(ranks);
    for (Number& one : out) EXPECT_EQ(one.get(), 6 + 4 * round);
  }
  // One thread also splits them, and destroys them one after the other.
  std::vector<ncclComm_t> halves(ranks);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(ncclCommSplit(comms[size_t(rank)], rank % 2, -rank, &halves[size_t(rank)], nullptr),
              ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
  for (int rank = 0; rank < ranks; ++rank) {
    int number = -1;
    EXPECT_EQ(ncclCommUserRank(halves[size_t(rank)], &number), ncclSuccess) << sentence();
    EXPECT_EQ(number, rank < 2 ? 1 : 0) << "the keys turn the order round";
  }
  // One group may have all of them.
  std::deque<Number> in, out;
  for (int rank = 0; rank < 2 * ranks; ++rank) {
    use_gpu(rank % ranks);
    in.emplace_back(1);
    out.emplace_back(-1);
  }
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < ranks; ++rank) {
    for (const bool half : {true, false}) {
      EXPECT_EQ(ncclAllReduce(in[size_t(rank)].at(), out[size_t(rank + (half ? ranks : 0))].at(), 1,
                              ncclInt32, ncclSum, (half ? halves : comms)[size_t(rank)], nullptr),
                ncclSuccess);
    }
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
  settle_all(ranks);
  for (int rank = 0; rank < 2 * ranks; ++rank) EXPECT_EQ(out[size_t(rank)].get(), rank < ranks ? 4 : 2);
  for (const ncclComm_t comm : halves) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  for (const ncclComm_t comm : comms) EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess) << sentence();
  for (const ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(NcclCommunicators, OneThreadJoinsAllRanksInAGroup) {
  const ncclUniqueId id = new_id();
  ncclComm_t comms[2] = {};
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  std::deque<Number> in, out;
  for (int rank = 0; rank < 2; ++rank) {
    use_gpu(rank);
    EXPECT_EQ(ncclCommInitRank(&comms[rank], 2, id, rank), ncclSuccess);
    in.emplace_back(rank + 1);
    out.emplace_back(-1);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (size_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(ncclAllReduce(in[rank].at(), out[rank].at(), 1, ncclInt32, ncclSum, comms[rank], nullptr),
              ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
  settle_all(2);
  for (Number& one : out) EXPECT_EQ(one.get(), 3);
  for (const ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(NcclCommunicators, NeedNotWaitUntilTheyAreMade) {
  const ncclUniqueId id = new_id();
  ncclConfig_t config = config_initializer;
  config.blocking = 0;
  ncclComm_t first{};
  EXPECT_EQ(ncclCommInitRankConfig(&first, 2, id, 0, &config), ncclInProgress) << sentence();
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(first, &state), ncclSuccess);
  EXPECT_EQ(state, ncclInProgress) << "the other rank has not come yet";
  int number = 0;
  EXPECT_EQ(ncclAllReduce(&number, &number, 1, ncclInt32, ncclSum, first, nullptr), ncclInvalidUsage);
  EXPECT_NE(sentence().find("still being made"), std::string::npos) << sentence();
  std::thread other([&] {
    const ncclComm_t second = joined(id, 2, 1);
    expect_sum(second, 2, 3);
    EXPECT_EQ(ncclCommDestroy(second), ncclSuccess);
  });
  do {
    EXPECT_EQ(ncclCommGetAsyncError(first, &state), ncclSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (state == ncclInProgress);
  EXPECT_EQ(state, ncclSuccess) << sentence();
  expect_sum(first, 1, 3);
  other.join();
  EXPECT_EQ(ncclCommDestroy(first), ncclSuccess);
}

TEST(NcclCommunicators, SeveralLiveAtOnceAndOnesEndLeavesTheOthers) {
  in_threads(2, [](ncclComm_t comm, int rank) {
    ncclComm_t others[3] = {};
    for (ncclComm_t& other : others)
      EXPECT_EQ(ncclCommSplit(comm, 0, rank, &other, nullptr), ncclSuccess) << sentence();
    for (const ncclComm_t other : others) expect_sum(other, rank, 1);
    EXPECT_EQ(ncclCommDestroy(others[0]), ncclSuccess);
    if (rank == 0) {
      EXPECT_EQ(ncclCommAbort(others[1]), ncclSuccess);
    }
    expect_sum(others[2], rank + 1, 3);
    expect_sum(comm, rank + 1, 3);
    if (rank == 1) {
      EXPECT_EQ(ncclCommAbort(others[1]), ncclSuccess);
    }
    EXPECT_EQ(ncclCommDestroy(others[2]), ncclSuccess);
  });
}

CHORALE_NCCL_TEST(NcclSplit, LeavesOutRanksWithoutColor, 3)(ncclComm_t comm, int rank) {
  ncclComm_t made{};
  EXPECT_EQ(ncclCommSplit(comm, rank == 1 ? NCCL_SPLIT_NOCOLOR : 5, 0, &made, nullptr), ncclSuccess)
      << sentence();
  EXPECT_EQ(made == nullptr, rank == 1);
  if (!made) return;
  expect_sum(made, rank, 2);
  EXPECT_EQ(ncclCommDestroy(made), ncclSuccess);
}

CHORALE_NCCL_TEST(NcclShrink, LeavesOutALivingRank, 3)(ncclComm_t comm, int rank) {
  expect_sum(comm, 1, 3);
  if (rank == 1) return;
  ncclComm_t made{};
  int out = 1;
  EXPECT_EQ(ncclCommShrink(comm, &out, 1, &made, nullptr, NCCL_SHRINK_DEFAULT), ncclSuccess) << sentence();
  ASSERT_NE(made, nullptr);
  expect_sum(made, rank, 2);
  int number = -1;
  EXPECT_EQ(ncclCommUserRank(made, &number), ncclSuccess);
  EXPECT_EQ(number, rank / 2);
  EXPECT_EQ(ncclCommDestroy(made), ncclSuccess);
}

TEST(NcclProcesses, ShrinkToTheSurvivors) {
  const std::vector<int> ends = forked_with_id(3, [&](const ncclUniqueId& id, int rank) {
    const ncclComm_t comm = joined(id, 3, rank);
    expect_sum(comm, 1, 3);
    if (rank == 1) return 7;
    Number value(0);
    EXPECT_EQ(ended(ncclAllReduce(value.at(), value.at(), 1, ncclInt32, ncclSum, comm, nullptr), comm),
              ncclRemoteError);
    ncclComm_t made{};
    int out = 1;
    EXPECT_EQ(ncclCommShrink(comm, &out, 1, &made, nullptr, NCCL_SHRINK_ABORT), ncclSuccess) << sentence();
    expect_sum(made, rank, 2);
    EXPECT_EQ(ncclCommDestroy(made), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 7, 0}));
}

TEST(NcclMisuse, HasACodeAndASentence) {
  in_threads(2, [](ncclComm_t comm, int rank) {
    // The process has one last error for all threads.
    if (rank == 1) return expect_sum(comm, 1, 2);
    Number value(1);
    const auto expect = [](ncclResult_t result, ncclResult_t wanted, const std::string& words) {
      EXPECT_EQ(result, wanted) << words;
      EXPECT_NE(sentence().find(words), std::string::npos) << sentence();
    };
    expect(ncclBroadcast(value.at(), value.at(), 1, ncclInt32, 2, comm, nullptr), ncclInvalidArgument,
           "there is no rank 2 in a communicator of 2 ranks");
    expect(ncclSend(value.at(), 1, ncclInt32, -1, comm, nullptr), ncclInvalidArgument, "there is no rank -1");
    expect(ncclAllReduce(nullptr, value.at(), 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument,
           "sendbuff is null");
    expect(ncclAllReduce(value.at(), nullptr, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument,
           "recvbuff is null");
    expect(ncclAllReduce(value.at(), value.at(), 1, ncclDataType_t(12), ncclSum, comm, nullptr),
           ncclInvalidArgument, "datatype 12 does not exist");
    expect(ncclAllReduce(value.at(), value.at(), 1, ncclInt32, ncclRedOp_t(7), comm, nullptr),
           ncclInvalidArgument, "op 7");
    expect(ncclAllReduce(value.at(), value.at(), SIZE_MAX / 2, ncclInt32, ncclSum, comm, nullptr),
           ncclInvalidArgument, "more than memory has");
    ncclComm_t made{};
    expect(ncclCommSplit(comm, -7, 0, &made, nullptr), ncclInvalidArgument, "color is -7");
    ncclConfig_t config{};
    expect(ncclCommSplit(comm, 0, 0, &made, &config), ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER");
    config = config_initializer;
    config.blocking = 2;
    expect(ncclCommSplit(comm, 0, 0, &made, &config), ncclInvalidArgument, "config.blocking is 2");
    int self = 0, other_rank = 5;
    expect(ncclCommShrink(comm, &self, 1, &made, nullptr, 0), ncclInvalidArgument, "cannot leave out rank 0");
    expect(ncclCommShrink(comm, &other_rank, 1, &made, nullptr, 0), ncclInvalidArgument,
           "cannot leave out rank 5");
    expect(ncclCommShrink(comm, &self, 0, &made, nullptr, 0), ncclInvalidArgument, "excludeRanksCount is 0");
    expect(ncclCommShrink(comm, &self, 1, &made, nullptr, 8), ncclInvalidArgument, "shrinkFlags is 8");
    expect(ncclCommRevoke(comm, 3), ncclInvalidArgument, "revokeFlags is 3");
    // A group with a wrong call runs nothing.
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    Number other(5);
    EXPECT_EQ(ncclAllReduce(value.at(), other.at(), 1, ncclInt32, ncclSum, comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclSend(value.at(), 1, ncclInt32, 9, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_EQ(other.get(), 5);
    expect_sum(comm, 1, 2);
  });
  ncclComm_t comm{};
  EXPECT_EQ(ncclCommInitRank(&comm, 1, ncclUniqueId{}, 0), ncclInvalidArgument);
  EXPECT_NE(sentence().find("was not made by ncclGetUniqueId() of this library"), std::string::npos)
      << sentence();
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
  Number value(0);
  EXPECT_EQ(ncclAllReduce(value.at(), value.at(), 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidUsage);
  EXPECT_NE(sentence().find("was finalized"), std::string::npos) << sentence();
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(value.at(), value.at(), 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument);
  EXPECT_NE(sentence().find("comm is not a communicator of this process"), std::string::npos) << sentence();
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
}

CHORALE_NCCL_TEST(NcclMisuse, DifferentCallsOfRanksFailOnAllRanks, 2)(ncclComm_t comm, int rank) {
  std::vector<int> data(100);
  EXPECT_EQ(ncclAllReduce(data.data(), data.data(), size_t(rank + 1), ncclInt32, ncclSum, comm, nullptr),
            ncclInvalidUsage);
  EXPECT_NE(sentence().find("bytes"), std::string::npos) << sentence();
}

CHORALE_NCCL_TEST(NcclErrors, AbortEndsTheCallsOfOtherRanks, 2)(ncclComm_t comm, int rank) {
  ncclComm_t made{};
  EXPECT_EQ(ncclCommSplit(comm, 0, rank, &made, nullptr), ncclSuccess);
  expect_sum(made, 1, 2);
  expect_sum(comm, 1, 2);  // both ranks are through with the call before
  if (rank == 0) {
    EXPECT_EQ(ncclCommAbort(made), ncclSuccess);
    return;
  }
  Number value(0);
  EXPECT_EQ(ended(ncclRecv(value.at(), 1, ncclInt32, 0, made, nullptr), made), ncclRemoteError);
  EXPECT_NE(sentence().find("rank 0 called ncclCommAbort()"), std::string::npos) << sentence();
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(made, &state), ncclSuccess);
  EXPECT_EQ(state, ncclRemoteError);
  EXPECT_EQ(ncclAllReduce(value.at(), value.at(), 1, ncclInt32, ncclSum, made, nullptr), ncclRemoteError);
  EXPECT_EQ(ncclCommAbort(made), ncclSuccess);
}

TEST(NcclProcesses, NameADeadRank) {
  const std::vector<int> ends = forked_with_id(3, [&](const ncclUniqueId& id, int rank) {
    const ncclComm_t comm = joined(id, 3, rank);
    expect_sum(comm, 1, 3);
    if (rank == 2) return 7;
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess) {
      EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      Number value(0);
      if (state == ncclSuccess)
        state = ended(ncclAllReduce(value.at(), value.at(), 1, ncclInt32, ncclSum, comm, nullptr), comm);
    }
    EXPECT_EQ(state, ncclRemoteError);
    EXPECT_NE(sentence().find("rank 2"), std::string::npos) << sentence();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 7}));
}

TEST(NcclErrors, ARevokedCommunicatorIsOver) {
  in_threads(2, [](ncclComm_t comm, int rank) {
    ncclComm_t made{};
    EXPECT_EQ(ncclCommSplit(comm, 0, rank, &made, nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommRevoke(made, 0), ncclSuccess) << sentence();
    Number value(0);
    EXPECT_EQ(ncclAllReduce(value.at(), value.at(), 1, ncclInt32, ncclSum, made, nullptr), ncclInvalidUsage);
    EXPECT_NE(sentence().find("ncclCommRevoke()"), std::string::npos) << sentence();
    EXPECT_EQ(ncclCommDestroy(made), ncclSuccess);
  });
}

TEST(NcclMemory, IsAllocatedRegisteredAndFreed) {
  in_threads(2, [](ncclComm_t comm, int rank) {
    void* memory = nullptr;
    EXPECT_EQ(ncclMemAlloc(&memory, 1 << 16), ncclSuccess) << sentence();
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % size_t(NCCL_WIN_REQUIRED_ALIGNMENT), 0u);
    ncclWindow_t window{};
    EXPECT_EQ(ncclCommWindowRegister(comm, memory, 1 << 16, &window, NCCL_WIN_COLL_SYMMETRIC), ncclSuccess)
        << sentence();
    ASSERT_NE(window, nullptr);
    void* handle = nullptr;
    EXPECT_EQ(ncclCommRegister(comm, memory, 1 << 16, &handle), ncclSuccess);
    int* const data = static_cast<int*>(memory);
    std::fill_n(data, 1000, rank + 1);
    EXPECT_EQ(ncclAllReduce(data, data, 1000, ncclInt32, ncclSum, comm, nullptr), ncclSuccess) << sentence();
    settle();
    EXPECT_EQ(std::count(data, data + 1000, 3), 1000);
    void* at = nullptr;
    EXPECT_EQ(ncclWinGetUserPtr(comm, window, &at), ncclSuccess);
    EXPECT_EQ(at, memory);
    EXPECT_EQ(ncclCommDeregister(comm, handle), ncclSuccess);
    EXPECT_EQ(ncclCommWindowDeregister(comm, window), ncclSuccess);
    EXPECT_EQ(ncclCommWindowDeregister(comm, window), ncclInvalidArgument);
    EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
    EXPECT_EQ(ncclMemFree(nullptr), ncclSuccess);
  });
}

}  // namespace
