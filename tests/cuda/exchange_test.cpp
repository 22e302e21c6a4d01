// Tests Exchange on GPUs, as tests/unit/exchange does on the CPU:
//   cuda_exchange RANKS [--quick] [--share-gpus [--processes]]
// It forks one process per rank, with a GPU each. With --share-gpus several ranks may share a GPU. They are
// then threads of one process or, with --processes, processes that take turns on it. With --quick it sends
// only short messages, so that it is short enough for compute-sanitizer. It exits with 0 if all is right.

#include <cuda_runtime.h>

#include <algorithm>
#include <chorale/exchange.hpp>
#include <chrono>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda/rank_program.hpp"
#include "tests/unit/exchange/messages.hpp"

using namespace chorale;
using test::TestMessage;

namespace {

constexpr uint8_t outside = 0xee;

void check(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

/// Holds a rank's stream and memory. The memory is allocated before anything waits. CUDA may wait for running
/// kernels when it allocates or frees, and if ranks share a GPU these kernels wait for this rank.
struct Rank {
  Rank(World& world, uint64_t bytes) : world(world), bytes(bytes) {
    for (cudaStream_t* const one : {&stream, &second})
      check(cudaStreamCreateWithFlags(one, cudaStreamNonBlocking));
    check(cudaMalloc(&memory, bytes));
    world.barrier();
  }
  ~Rank() {
    cudaFree(memory);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(second);
  }

  Config config() const {
    Config made;
    made.backend = "cuda";
    made.timeout = world.timeout();
    return made;
  }
  int right() const { return (world.rank() + 1) % world.ranks(); }
  int left() const { return (world.rank() + world.ranks() - 1) % world.ranks(); }

  /// Waits until all enqueued work has ended on all ranks.
  void ended(Exchange& exchange) const {
    exchange.synchronize(stream);
    exchange.synchronize(second);
    world.barrier();
  }

  World& world;
  uint64_t bytes;
  uint8_t* memory = nullptr;
  cudaStream_t stream = nullptr, second = nullptr;
};

/// Places the messages of a call in a rank's memory.
class Buffers {
 public:
  Buffers(const Rank& rank, const std::vector<TestMessage>& all) : rank_(rank) {
    const int self = rank.world.rank();
    for (const TestMessage& message : all) {
      if (message.from == self)
        sends.push_back({place(message, message.odd_from), message.bytes, message.to});
    }
    begin_ = host_.size();
    for (const TestMessage& message : all) {
      if (message.to != self) continue;
      recvs.push_back({place(message, message.odd_to), message.bytes, message.from});
    }
    require(host_.size() <= rank.bytes, "the test has too little memory");
    wanted_ = host_;
    for (const Placed& one : placed_) {
      uint8_t* const to = (one.at < begin_ ? host_ : wanted_).data() + one.at;
      for (uint64_t at = 0; at < one.message.bytes; ++at) to[at] = one.message.byte(at);
    }
    upload();
  }

  void upload() const {
    check(cudaMemcpyAsync(rank_.memory, host_.data(), host_.size(), cudaMemcpyHostToDevice, rank_.stream));
    check(cudaStreamSynchronize(rank_.stream));
  }

  void require_right(const std::string& what) const {
    std::vector<uint8_t> got(host_.size() - begin_);
    check(
        cudaMemcpyAsync(got.data(), rank_.memory + begin_, got.size(), cudaMemcpyDeviceToHost, rank_.stream));
    check(cudaStreamSynchronize(rank_.stream));
    const auto differs = std::mismatch(got.begin(), got.end(), wanted_.begin() + int64_t(begin_));
    if (differs.first == got.end()) return;
    const uint64_t at = begin_ + uint64_t(differs.first - got.begin());
    for (const Placed& one : placed_) {
      if (at < one.at || at >= one.at + one.message.bytes) continue;
      require(false, what + ": byte " + std::to_string(at - one.at) + " of the " +
                         std::to_string(one.message.bytes) + " from rank " +
                         std::to_string(one.message.from) + " is wrong");
    }
    require(false, what + ": a byte beside the messages was written");
  }

  std::vector<SendTo> sends;
  std::vector<RecvFrom> recvs;

 private:
  struct Placed {
    TestMessage message;
    uint64_t at;
  };

  uint8_t* place(const TestMessage& message, uint64_t odd) {
    placed_.push_back({message, host_.size() + 16 + odd});
    host_.resize((host_.size() + message.bytes + 48 + 15) / 16 * 16, outside);
    return rank_.memory + placed_.back().at;
  }

  const Rank& rank_;
  std::vector<Placed> placed_;
  std::vector<uint8_t> host_, wanted_;
  uint64_t begin_ = 0;  ///< the first of the received bytes
};

void make_call(const Rank& rank, Exchange& exchange, const std::vector<TestMessage>& all,
               const std::string& what) {
  const Buffers buffers(rank, all);
  exchange.exchange(buffers.sends, buffers.recvs, rank.stream);
  rank.ended(exchange);
  buffers.require_right(what);
}

void test_lists(const Rank& rank, bool quick) {
  for (const uint64_t slot : {16u, 256u, 4096u}) {
    for (const uint32_t slots : {1u, 3u}) {
      Exchange exchange(rank.world, {.slot_bytes = slot, .slots = slots, .blocks_per_peer = 2},
                        rank.config());
      for (uint64_t call = 0; call < (quick ? 3 : 10); ++call)
        make_call(rank, exchange, test::messages_of(call + slot, rank.world.ranks(), 3, slot * 20),
                  "a drawn list");
    }
  }
  Exchange exchange(rank.world, {}, rank.config());
  for (uint64_t call = 0; call < (quick ? 2 : 10); ++call)
    make_call(rank, exchange, test::messages_of(call, rank.world.ranks(), 3, quick ? 2000 : 400'000),
              "a drawn list");
  make_call(rank, exchange, test::messages_of(77, rank.world.ranks(), quick ? 60 : 400, 50), "a long list");
}

/// Sends from each rank to the next more than all rings hold, before any rank receives, on two streams.
void test_long(const Rank& rank) {
  const int ranks = rank.world.ranks();
  const uint64_t n = 48 << 20;
  Exchange exchange(rank.world, {}, rank.config());
  std::vector<TestMessage> all;
  for (int from = 0; from < ranks; ++from)
    all.push_back({from, (from + 1) % ranks, n + 5, uint64_t(from), 0, 0});
  const Buffers buffers(rank, all);
  if (ranks > 1) {
    exchange.exchange(buffers.sends, {}, rank.stream);
    rank.world.barrier();
    exchange.exchange({}, buffers.recvs, rank.second);
  } else {
    exchange.exchange(buffers.sends, buffers.recvs, rank.stream);
  }
  rank.ended(exchange);
  buffers.require_right("a message longer than the rings");

  const auto begin = std::chrono::steady_clock::now();
  const int calls = 20;
  for (int call = 0; call < calls; ++call) exchange.exchange(buffers.sends, buffers.recvs, rank.stream);
  rank.ended(exchange);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (rank.world.rank() == 0)
    std::printf("  %.0f GB/s each way, to the next rank\n", double(n) * calls / seconds / 1e9);
}

/// Sends more bytes than fit into 32 bits, if all ranks have enough memory.
void test_huge(const Rank& rank) {
  const uint64_t n = (uint64_t{4} << 30) + 12345, part = 256 << 20;
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total));
  const bool room = free / uint64_t(rank.world.ranks()) > 3 * n;
  for (const auto& theirs : rank.world.allgather(std::as_bytes(std::span(&room, 1)))) {
    if (theirs[0] != std::byte{0}) continue;
    if (rank.world.rank() == 0) std::printf("  skipped: a GPU has too little memory\n");
    return;
  }
  Exchange exchange(rank.world, {}, rank.config());
  uint8_t* memory[2] = {};
  for (uint8_t*& one : memory) check(cudaMalloc(&one, n));
  const auto value = [](int of, uint64_t at) { return uint8_t(uint64_t(of) * 50 + at / part); };
  for (uint64_t at = 0; at < n; at += part) {
    const uint64_t bytes = std::min(part, n - at);
    check(cudaMemsetAsync(memory[0] + at, value(rank.world.rank(), at), bytes, rank.stream));
  }
  check(cudaStreamSynchronize(rank.stream));
  rank.world.barrier();
  const SendTo send{memory[0], n, rank.right()};
  const RecvFrom recv{memory[1], n, rank.left()};
  exchange.exchange({&send, 1}, {&recv, 1}, rank.stream);
  rank.ended(exchange);
  std::vector<uint8_t> got(4096);
  for (uint64_t begin = 0; begin < n; begin += part) {
    const uint64_t bytes = std::min(part, n - begin);
    for (const uint64_t at : {begin, begin + bytes / 2, begin + bytes - got.size()}) {
      check(cudaMemcpyAsync(got.data(), memory[1] + at, got.size(), cudaMemcpyDeviceToHost, rank.stream));
      check(cudaStreamSynchronize(rank.stream));
      require(got == std::vector<uint8_t>(got.size(), value(rank.left(), begin)),
              "a message of more than 4 GiB is wrong at " + std::to_string(at));
    }
  }
  rank.world.barrier();
  for (uint8_t* const one : memory) check(cudaFree(one));
  rank.world.barrier();
}

/// Replays one graph with other data.
void test_replays(const Rank& rank, bool quick) {
  Exchange exchange(rank.world, {.slot_bytes = 1024, .slots = 2}, rank.config());
  const int ranks = rank.world.ranks();
  auto all = test::messages_of(5, ranks, 3, 30'000);
  const Buffers first(rank, all);
  cudaGraph_t graph;
  cudaGraphExec_t replayed;
  check(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal));
  exchange.exchange(first.sends, first.recvs, rank.stream);
  check(cudaStreamEndCapture(rank.stream, &graph));
  check(cudaGraphInstantiate(&replayed, graph, 0));
  check(cudaGraphUpload(replayed, rank.stream));
  check(cudaStreamSynchronize(rank.stream));
  rank.world.barrier();
  for (uint64_t replay = 0; replay < (quick ? 5 : 50); ++replay) {
    for (TestMessage& message : all) message.number += 1000 * (replay + 1);
    const Buffers buffers(rank, all);  // at the same addresses
    check(cudaGraphLaunch(replayed, rank.stream));
    rank.ended(exchange);
    buffers.require_right("a replay");
  }
  rank.world.barrier();
  check(cudaGraphExecDestroy(replayed));
  check(cudaGraphDestroy(graph));
  rank.world.barrier();
}

/// Waits until the world has stopped, and returns the error that stopped it.
std::string said(const Rank& rank, Exchange& exchange, RunError::Reason reason) {
  for (int look = 0; look < 60'000; ++look) {
    try {
      exchange.check();
    } catch (const RunError& error) {
      require(error.reason == reason, std::string("another error: ") + error.what());
      check(cudaStreamSynchronize(rank.stream));
      return error.what();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw std::runtime_error("nobody heard that something is wrong");
}

void require_mended(const Rank& rank, Exchange& exchange) {
  rank.world.reset();
  exchange.reset();
  make_call(rank, exchange, test::messages_of(3, rank.world.ranks(), 3, 3000), "after a reset");
}

void test_faults(const Rank& rank) {
  if (rank.world.ranks() < 2) return;
  Exchange exchange(rank.world, {.slot_bytes = 256, .slots = 2, .blocks_per_peer = 3}, rank.config());
  const int self = rank.world.rank();
  for (const auto& [sent, received] :
       {std::pair<uint64_t, uint64_t>{5, 6}, {0, 1}, {100'000, 40}, {40, 100'000}}) {
    if (self == 0) exchange.send(rank.memory, sent, 1, rank.stream);
    if (self == 1) exchange.recv(rank.memory, received, 0, rank.stream);
    const std::string wanted = "rank 0 sends " + std::to_string(sent) + " bytes to rank 1, which receives " +
                               std::to_string(received);
    const std::string what = said(rank, exchange, RunError::Reason::aborted);
    require(what.find(wanted) != std::string::npos, "other sizes: " + what);
    require_mended(rank, exchange);
  }
  {
    Config soon = rank.config();
    soon.timeout = std::chrono::seconds(2);
    Exchange hasty(rank.world, {}, soon);
    if (self == 0) hasty.recv(rank.memory, 100, 1, rank.stream);
    const std::string what = said(rank, hasty, RunError::Reason::timed_out);
    require(what.find("rank 0 receives a message of 100 bytes from rank 1, channel 0, but rank 1 did not "
                      "take part in time") != std::string::npos,
            "a peer that does not come: " + what);
    require_mended(rank, exchange);
    hasty.reset();
    make_call(rank, hasty, test::messages_of(4, rank.world.ranks(), 3, 3000), "after a timeout");
  }
  try {
    std::vector<uint8_t> pageable(100);
    exchange.send(pageable.data(), 100, rank.right(), rank.stream);
    int pageable_too = 0;
    check(cudaDeviceGetAttribute(&pageable_too, cudaDevAttrPageableMemoryAccess, 0));
    require(pageable_too != 0, "memory that a GPU cannot read was taken");
    exchange.recv(rank.memory, 100, rank.left(), rank.stream);
    rank.ended(exchange);
  } catch (const UsageError& error) {
    require(std::string(error.what()).find("CUDA does not know the ") != std::string::npos, error.what());
  }
  rank.world.barrier();
}

bool run_rank(World& world, bool quick) {
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus));
  check(cudaSetDevice(world.rank() % gpus));
  const Rank rank(world, quick ? 64 << 20 : uint64_t{256} << 20);
  const auto say = [&](const char* what) {
    world.barrier();
    if (world.rank() == 0) std::printf("%s\n", what);
  };
  say("lists of messages");
  test_lists(rank, quick);
  say("replays");
  test_replays(rank, quick);
  say("faults");
  test_faults(rank);
  if (!quick) {
    say("messages longer than the rings");
    test_long(rank);
    say("a message of more than 4 GiB");
    test_huge(rank);
  }
  world.barrier();
  return true;
}

}  // namespace

int main(int argc, char** argv) { return test::rank_program(argc, argv, "cuda_exchange", run_rank); }
