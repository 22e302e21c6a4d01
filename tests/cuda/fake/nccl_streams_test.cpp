// These tests use streams, graphs and registered memory with libnccl.so.2 on the fake GPUs, because the CPU
// has none.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/fake/state.hpp"
#include "tests/cuda/fake/streams.hpp"
#include "tests/nccl/ranks.hpp"
#include "tests/unit/new_folder.hpp"

namespace {

using namespace nccl_tests;

constexpr int ranks = 3;
constexpr size_t count = 3000;

/// Owns a stream that does not wait for the default stream.
class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream &) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Owns a graph of the calls that a stream captured.
class Captured {
 public:
  template <class Calls>
  Captured(cudaStream_t stream, const Calls &calls) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    calls();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&graph_, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
  }
  ~Captured() { cudaGraphExecDestroy(graph_); }
  Captured(const Captured &) = delete;
  void launch(cudaStream_t stream) const { EXPECT_EQ(cudaGraphLaunch(graph_, stream), cudaSuccess); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

Elements numbers(int rank, int turn) {
  return Elements(ncclInt32, count, [=](size_t at) { return number(rank, at) + turn; });
}
Elements sum(int turn) {
  return Elements(ncclInt32, count, [=](size_t at) {
    double all = 0;
    for (int rank = 0; rank < ranks; ++rank) all += number(rank, at) + turn;
    return all;
  });
}

// NCCL allows a capture of a call that has not run before.
CHORALE_NCCL_TEST(NcclGraphs, CaptureTheFirstCall, ranks)(ncclComm_t comm, int rank) {
  Stream stream;
  Elements in(ncclInt32, count), out(ncclInt32, count);
  const Captured graph(stream, [&] {
    EXPECT_EQ(ncclAllReduce(in.data(), out.data(), count, ncclInt32, ncclSum, comm, stream), ncclSuccess)
        << sentence();
  });
  for (int turn = 0; turn < 5; ++turn) {
    in = numbers(rank, turn);
    graph.launch(stream);
    EXPECT_TRUE(out == sum(turn)) << "turn " << turn;
  }
}

CHORALE_NCCL_TEST(NcclGraphs, CaptureAGroup, ranks)(ncclComm_t comm, int rank) {
  Stream stream;
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  Elements in(ncclInt32, count), out(ncclInt32, count), got(ncclInt32, count);
  const Captured graph(stream, [&] {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(in.data(), count, ncclInt32, next, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(in.data(), out.data(), count, ncclInt32, ncclSum, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(got.data(), count, ncclInt32, before, comm, stream), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
  });
  for (int turn = 0; turn < 5; ++turn) {
    in = numbers(rank, turn);
    graph.launch(stream);
    EXPECT_TRUE(out == sum(turn)) << "turn " << turn;
    EXPECT_TRUE(got == numbers(before, turn)) << "turn " << turn;
  }
}

// Calls of a communicator run in their order, whatever streams they are on.
CHORALE_NCCL_TEST(NcclStreams, TakeTurns, ranks)(ncclComm_t comm, int rank) {
  const Stream streams[2];
  Elements in = numbers(rank, 0), first(ncclInt32, count), second(ncclInt32, count);
  char *const from = in.data(), *const between = first.data(), *const to = second.data();
  for (int turn = 0; turn < 2; ++turn) {
    in = numbers(rank, turn);
    // The first stream is late. In the second turn no call waits on the host.
    const auto sleep = [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
    EXPECT_EQ(cudaLaunchHostFunc(streams[0], sleep, nullptr), cudaSuccess);
    EXPECT_EQ(ncclAllReduce(from, between, count, ncclInt32, ncclSum, comm, streams[0]), ncclSuccess)
        << sentence();
    EXPECT_EQ(ncclAllReduce(between, to, count, ncclInt32, ncclMax, comm, streams[1]), ncclSuccess)
        << sentence();
    EXPECT_TRUE(second == sum(turn)) << "turn " << turn;
  }
}

/// Holds memory that all ranks have registered.
class Registered {
 public:
  explicit Registered(ncclComm_t comm) : comm_(comm) {
    EXPECT_EQ(ncclMemAlloc(&memory_, count * sizeof(int)), ncclSuccess) << sentence();
    EXPECT_EQ(ncclCommWindowRegister(comm, memory_, count * sizeof(int), &window_, NCCL_WIN_COLL_SYMMETRIC),
              ncclSuccess)
        << sentence();
  }
  ~Registered() {
    settle();
    EXPECT_EQ(ncclCommWindowDeregister(comm_, window_), ncclSuccess) << sentence();
    EXPECT_EQ(ncclMemFree(memory_), ncclSuccess);
  }
  Registered(const Registered &) = delete;

  void set(Elements from) { std::memcpy(memory_, from.data(), count * sizeof(int)); }
  void *at() const { return memory_; }
  Elements values() const {
    Elements copy(ncclInt32, count);
    std::memcpy(copy.data(), memory_, count * sizeof(int));
    return copy;
  }

 private:
  const ncclComm_t comm_;
  void *memory_ = nullptr;
  ncclWindow_t window_{};
};

// Ranks other than the root need not pass all buffers, whatever is registered.
CHORALE_NCCL_TEST(NcclWindows, ServeCollectivesWithARoot, ranks)(ncclComm_t comm, int rank) {
  constexpr int root = 1;
  Registered in(comm), out(comm);
  for (int turn = 0; turn < 3; ++turn) {
    in.set(numbers(rank, turn));
    EXPECT_EQ(ncclAllReduce(in.at(), out.at(), count, ncclInt32, ncclSum, comm, nullptr), ncclSuccess)
        << sentence();
    EXPECT_TRUE(out.values() == sum(turn)) << "all-reduce";
    out.set(numbers(0, 0));
    EXPECT_EQ(ncclReduce(in.at(), rank == root ? out.at() : nullptr, count, ncclInt32, ncclSum, root, comm,
                         nullptr),
              ncclSuccess)
        << sentence();
    EXPECT_TRUE(out.values() == (rank == root ? sum(turn) : numbers(0, 0))) << "reduce";
    EXPECT_EQ(
        ncclBroadcast(rank == root ? in.at() : nullptr, out.at(), count, ncclInt32, root, comm, nullptr),
        ncclSuccess)
        << sentence();
    EXPECT_TRUE(out.values() == numbers(root, turn)) << "broadcast";
  }
}

// A broadcast ignores what ranks other than the root send.
CHORALE_NCCL_TEST(NcclBroadcasts, IgnoreTheInputOfOtherRanks, ranks)(ncclComm_t comm, int rank) {
  constexpr int root = 1;
  Elements in = numbers(rank, 0), out(ncclInt32, count);
  const std::vector<const void *> strays{reinterpret_cast<const void *>(uintptr_t(4096)), &root,
                                         out.data() + 16};
  for (const void *const stray : strays) {
    out = numbers(rank, 7);
    EXPECT_EQ(
        ncclBroadcast(rank == root ? in.data() : stray, out.data(), count, ncclInt32, root, comm, nullptr),
        ncclSuccess)
        << sentence();
    EXPECT_TRUE(out == numbers(root, 0));
  }
}

/// Makes a communicator of two ranks in threads, uses it, and aborts it while a graph may still run.
void use_and_abort() {
  const ncclUniqueId id = new_id();
  std::barrier through(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const ncclComm_t comm = joined(id, 2, rank);
      Stream stream;
      Elements in = numbers(rank, 0), out(ncclInt32, count);
      const Captured graph(stream, [&] {
        EXPECT_EQ(ncclAllReduce(in.data(), out.data(), count, ncclInt32, ncclSum, comm, stream), ncclSuccess)
            << sentence();
      });
      graph.launch(stream);
      settle();
      through.arrive_and_wait();
      if (rank == 1) graph.launch(stream);  // waits for rank 0, until the abort
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
  }
  for (std::thread &thread : threads) thread.join();
}

// A thread of the library frees the memory when the work of the GPUs has ended.
TEST(NcclAborts, FreeTheMemoryOfGpus) {
  for (int round = 0; round < 3; ++round) use_and_abort();
  constexpr uint64_t nearly_none = 1 << 20;
  EXPECT_LE(used_memory_at_most(nearly_none), nearly_none);
}

// A program reads its errors itself, also those that are older than a line of the log.
TEST(NcclLog, LeavesTheErrorsOfTheProgram) {
  const std::string log = chorale::test::new_folder("nccl_log") + "/log";
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_FILE", log.c_str(), 1);
  ncclResetDebugInit();
  chorale::test::fake::last_error() = cudaErrorLaunchFailure;
  int ranks = 0;
  EXPECT_EQ(ncclCommCount(nullptr, &ranks), ncclInvalidArgument);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  unsetenv("NCCL_DEBUG_FILE");
  unsetenv("NCCL_DEBUG");
  std::ifstream file(log);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find(" [0] NCCL WARN "), std::string::npos) << text;
}

// A rank has memory that its peers cannot map. The first call copies it on that rank alone. All ranks run the
// later calls of this size in another way.
/// Returns the most thread blocks of the kernels of some calls on two ranks.
uint32_t most_blocks_of_calls() {
  chorale::test::fake::most_blocks = 0;
  in_threads(2, [](ncclComm_t comm, int rank) {
    constexpr size_t part = 20000;
    const size_t peer = size_t(1 - rank);
    Elements in(ncclInt32, 2 * part, [&](size_t at) { return number(rank, at); });
    const auto expect = [](const Elements &found, ncclResult_t result,
                           const std::function<double(size_t)> &value) {
      EXPECT_EQ(result, ncclSuccess) << sentence();
      settle();
      EXPECT_TRUE(found == Elements(ncclInt32, 2 * part, value));
    };
    const auto sum = [](size_t at) { return number(0, at) + number(1, at); };
    Elements out(ncclInt32, 2 * part);
    expect(out, ncclAllReduce(in.data(), out.data(), 2 * part, ncclInt32, ncclSum, comm, nullptr), sum);
    expect(out, ncclAllGather(in.data(), out.data(), part, ncclInt32, comm, nullptr),
           [](size_t at) { return number(int(at / part), at % part); });
    expect(out, ncclBroadcast(in.data(), out.data(), 2 * part, ncclInt32, 1, comm, nullptr),
           [](size_t at) { return number(1, at); });
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(in.data(), 2 * part, ncclInt32, int(peer), comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclRecv(out.data(), 2 * part, ncclInt32, int(peer), comm, nullptr), ncclSuccess);
    expect(out, ncclGroupEnd(), [&](size_t at) { return number(int(peer), at); });
  });
  return chorale::test::fake::most_blocks;
}

TEST(NcclLimits, KernelsHaveAtMostAsManyBlocksAsNcclMayTake) {
  EXPECT_GT(most_blocks_of_calls(), 24u);
  for (const char *const limit : {"24", "8", "4"}) {
    setenv("NCCL_MAX_CTAS", limit, 1);
    EXPECT_LE(most_blocks_of_calls(), uint32_t(std::stoi(limit)));
  }
  unsetenv("NCCL_MAX_CTAS");
}

TEST(NcclMemory, OfAPoolIsCopiedOnce) {
  const std::string log = chorale::test::new_folder("nccl_memory") + "/log";
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_FILE", log.c_str(), 1);
  ncclResetDebugInit();
  constexpr size_t part = 300000;  // long enough for a plan whose peers access the outputs
  in_threads(ranks, [](ncclComm_t comm, int rank) {
    const auto value = [](int of, int turn, size_t at) { return number(of, at) + turn; };
    int *pooled = nullptr;
    ASSERT_EQ(cudaMallocAsync(reinterpret_cast<void **>(&pooled), ranks * part * sizeof(int), nullptr),
              cudaSuccess);
    Elements own(ncclInt32, ranks * part);
    for (int turn = 0; turn < 3; ++turn) {
      const Elements in(ncclInt32, part, [&](size_t at) { return value(rank, turn, at); });
      Elements from = in;
      int *const to = rank == 1 ? pooled : reinterpret_cast<int *>(own.data());
      EXPECT_EQ(ncclAllGather(from.data(), to, part, ncclInt32, comm, nullptr), ncclSuccess) << sentence();
      settle();
      size_t wrong = 0;
      for (size_t at = 0; at < ranks * part; ++at) wrong += to[at] != value(int(at / part), turn, at % part);
      EXPECT_EQ(wrong, 0u) << "turn " << turn << ", rank " << rank;
    }
    EXPECT_EQ(cudaFree(pooled), cudaSuccess);
  });
  unsetenv("NCCL_DEBUG_FILE");
  unsetenv("NCCL_DEBUG");
  std::ifstream file(log);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t plan = text.find("AllGather: 3600000 Bytes -> plan allgather_by_peer_b64, "),
               copy = text.find(
                   "rank 1 copies buffers through memory of the library, which takes longer, because: it "
                   "comes from a stream-ordered pool"),
               messages = text.find("AllGather: 3600000 Bytes -> messages\n"),
               other = text.find("AllGather: 3600000 Bytes, not taken: allgather_by_peer_b64 (needs ");
  EXPECT_NE(text.find(" [2] NCCL INFO ncclCommInitRank comm "), std::string::npos) << text;
  EXPECT_LT(plan, messages) << text;
  EXPECT_LT(copy, messages) << text;
  EXPECT_NE(messages, std::string::npos) << text;
  EXPECT_LT(messages, other) << text;
  EXPECT_NE(other, std::string::npos) << text;
}

}  // namespace
