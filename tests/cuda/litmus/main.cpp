// Tests docs/memory-model.md on GPUs, and shows what GPUs do where it promises nothing.
//
//   cuda_litmus [--runs N] [--share-gpus]
//
// It prints a row for each question, with the number of times that the outcome was seen that the model
// forbids or does not exclude. With --share-gpus on one GPU both sides are blocks of that GPU, and questions
// that need the memory of a peer are left out. The model forbids the same outcomes there as between GPUs, but
// fewer of the open ones can be seen. Exit status 0: no forbidden outcome was seen; 1: one was, or a wait
// reached its deadline; 2: a wrong call; 77: fewer than 2 GPUs, or none to share.

#include <cuda_runtime_api.h>

#include <chorale/executor.hpp>
#include <chorale/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "alias.hpp"
#include "executor/cuda/device/error.hpp"
#include "kernels.hpp"
#include "tests/cuda/share_gpus.hpp"

namespace chorale::litmus {
namespace {

using cuda::check;

constexpr uint64_t timeout_ns = 10'000'000'000;  // the limit of each wait

int failures = 0;
bool share_gpus = false;
int gpus_used = 2;  ///< 1: both ranks are on GPU 0

int gpu_of(int rank) { return rank % gpus_used; }

/// \param promised  true: the outcome is forbidden
void report(const char* question, bool promised, uint64_t wanted, const Tally& tally) {
  const bool failed = tally.stop != 0 || tally.rounds != wanted || (promised && tally.stale != 0);
  failures += failed;
  std::printf("%-52s %-12s %10llu runs  %12llu stale%s%s\n", question,
              promised ? "forbidden" : "not promised", static_cast<unsigned long long>(tally.rounds),
              static_cast<unsigned long long>(tally.stale), tally.stop ? "  ended by its deadline" : "",
              failed ? "  FAILED" : "");
  std::fflush(stdout);
}

/// Holds zeroed memory of a GPU.
template <class T>
class OnGpu {
 public:
  explicit OnGpu(int gpu, uint64_t bytes = sizeof(T)) : gpu_(gpu), bytes_(bytes) {
    check(cudaSetDevice(gpu_), "cudaSetDevice");
    check(cudaMalloc(&at_, bytes_), "cudaMalloc");
    clear();
  }
  ~OnGpu() { cuda::check_quietly(cudaFree(at_), "cudaFree"); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  T* get() const { return static_cast<T*>(at_); }
  void clear() {
    check(cudaSetDevice(gpu_), "cudaSetDevice");
    check(cudaMemset(at_, 0, bytes_), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaMemset");
  }
  T read() const {
    T value;
    check(cudaMemcpy(&value, at_, sizeof(T), cudaMemcpyDeviceToHost), "a tally");
    return value;
  }

 private:
  int gpu_;
  uint64_t bytes_;
  void* at_ = nullptr;
};

void join_peers() {
  for (int gpu = 0; gpu < gpus_used && gpus_used > 1; ++gpu) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    const cudaError_t joined = cudaDeviceEnablePeerAccess(1 - gpu, 0);
    if (joined == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();  // an executor of this process ran before
    } else {
      check(joined, "cudaDeviceEnablePeerAccess");
    }
  }
}

/// Holds two ranks with one block each.
class Pair {
 public:
  Pair() {
    for (int rank = 0; rank < 2; ++rank) {
      check(cudaSetDevice(gpu_of(rank)), "cudaSetDevice");
      check(cudaStreamCreateWithFlags(&streams_[rank], cudaStreamNonBlocking), "a stream");
    }
  }
  Pair(const Pair&) = delete;
  ~Pair() {
    for (const cudaStream_t stream : streams_)
      cuda::check_quietly(cudaStreamDestroy(stream), "cudaStreamDestroy");
  }

  template <class Writer, class Reader>
  void run(const Writer& writer, const Reader& reader) {
    for (auto* room : {&of_writer_, &of_reader_}) room->clear();
    for (auto* tally : {&writers_, &readers_, &carried_}) tally->clear();
    check(cudaSetDevice(gpu_of(0)), "cudaSetDevice");
    writer(of_writer_.get(), of_reader_.get(), writers_.get(), streams_[0]);
    check(cudaGetLastError(), "the writer's launch");
    check(cudaSetDevice(gpu_of(1)), "cudaSetDevice");
    reader(of_reader_.get(), of_writer_.get(), readers_.get(), carried_.get(), streams_[1]);
    check(cudaGetLastError(), "the reader's launch");
    for (const cudaStream_t stream : streams_) check(cudaStreamSynchronize(stream), "a litmus test");
  }
  Tally seen() const { return readers_.read(); }
  Tally carried() const { return carried_.read(); }

 private:
  OnGpu<Room> of_writer_{gpu_of(0), room_bytes()}, of_reader_{gpu_of(1), room_bytes()};
  OnGpu<Tally> writers_{gpu_of(0)}, readers_{gpu_of(1)}, carried_{gpu_of(1)};
  cudaStream_t streams_[2] = {};
};

void ask_messages(Pair& pair, uint64_t runs) {
  const auto ask = [&](const char* question, bool promised, Publish publish, Look look) {
    pair.run(
        [&](Room* mine, Room* peers, Tally* tally, void* stream) {
          launch_message_writer(mine, peers, runs, publish, timeout_ns, tally, stream);
        },
        [&](Room* mine, Room* peers, Tally* tally, Tally*, void* stream) {
          launch_message_reader(mine, peers, runs, look, timeout_ns, tally, stream);
        });
    report(question, promised, runs, pair.seen());
  };
  ask("signal_publishes_puts", true, Publish::release, Look::acquire);
  ask("relaxed_signal_publishes_nothing", false, Publish::relaxed, Look::acquire);
  ask("relaxed_wait_sees_nothing", false, Publish::release, Look::relaxed);
}

void ask_packets(Pair& pair, uint64_t runs) {
  pair.run([&](Room* mine, Room* peers, Tally* tally,
               void* stream) { launch_packet_writer(mine, peers, runs, timeout_ns, tally, stream); },
           [&](Room* mine, Room* peers, Tally* tally, Tally* carried, void* stream) {
             launch_packet_reader(mine, peers, runs, timeout_ns, tally, carried, stream);
           });
  report("packets_carry_their_data", true, runs, pair.carried());
  report("packets_publish_nothing_else", false, runs, pair.seen());
}

void ask_aliases(uint64_t runs) {
  for (int home = 0; home < gpus_used; ++home) {
    const TwoAddresses memory(home, 0, threads * words_apart * sizeof(uint64_t));
    OnGpu<Tally> tally(0);
    const auto ask = [&](const char* question, bool promised, Between between) {
      tally.clear();
      check(cudaMemset(memory.first(), 0, threads * words_apart * sizeof(uint64_t)), "cudaMemset");
      launch_alias(memory.first(), memory.second(), runs, between, tally.get());
      check(cudaGetLastError(), "the launch of a litmus test");
      check(cudaDeviceSynchronize(), "a litmus test");
      report((std::string(question) + (home == 0 ? ", own memory" : ", peer's memory")).c_str(), promised,
             runs, tally.read());
    };
    ask("two addresses, nop", false, Between::nop);
    ask("two addresses, fence.acq_rel.sys", false, Between::fence);
    ask("two addresses, fence.proxy.alias", true, Between::proxy_fence);
  }
}

/// Captures launches of an all-reduce, each of which reduces the sums of the launch before, and replays them
/// with new inputs each time.
void ask_replay(const std::string& name, int launches, const std::string& question, uint64_t runs) {
  const Plan plan = load(CHORALE_SOURCE_DIR "/plans/shipped/" + name + ".json");
  constexpr uint64_t elements = 1024;
  // A stop must not cost a million deadlines. Ranks that share a GPU would stop each other if one filled its
  // queue, which holds about a thousand launches.
  const uint64_t at_once = gpus_used == 1 ? 100 : 1000;
  std::vector<Tally> tallies(2);
  run_local(2, [&](World& world) {
    const int rank = world.rank();
    const int gpu = gpu_of(rank);
    check(cudaSetDevice(gpu), "cudaSetDevice");
    Config config = Config::load();
    config.backend = "cuda";
    Executor executor(world, config);
    std::vector<uint32_t*> buffers;
    while (buffers.size() < size_t(launches) + 1)
      buffers.push_back(static_cast<uint32_t*>(executor.allocate(elements * sizeof(uint32_t))));
    OnGpu<uint64_t> round(gpu);
    OnGpu<Tally> tally(gpu);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    std::vector<Arguments> calls;
    for (int launch = 0; launch < launches; ++launch) {
      calls.push_back({.in = buffers[size_t(launch)],
                       .out = buffers[size_t(launch) + 1],
                       .bytes = elements * sizeof(uint32_t),
                       .dtype = DType::u32});
      executor.prepare(plan, calls.back());
    }
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "the begin of a capture");
    launch_fill(buffers.front(), elements, uint32_t(rank), round.get(), stream);
    for (const Arguments& call : calls) executor.execute(plan, call, stream);
    launch_compare(buffers.back(), elements, 2, 1u << (launches - 1), round.get(), tally.get(), stream);
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream, &graph), "the end of a capture");
    cudaGraphExec_t replay = nullptr;
    check(cudaGraphInstantiate(&replay, graph, 0), "a graph");
    check(cudaGraphDestroy(graph), "a graph");
    world.barrier();  // while a replay waits, a rank of the same GPU may not be able to make its graph
    for (uint64_t run = 1; run <= runs; ++run) {
      check(cudaGraphLaunch(replay, stream), "a replay");
      if (run % at_once == 0) executor.synchronize(stream);
    }
    executor.synchronize(stream);
    tallies[size_t(rank)] = tally.read();
    check(cudaGraphExecDestroy(replay), "a graph");
    check(cudaStreamDestroy(stream), "a stream");
  });
  for (size_t rank = 0; rank < tallies.size(); ++rank)
    report((question + ", rank " + std::to_string(rank)).c_str(), true, runs, tallies[rank]);
}

int run(uint64_t runs) {
  int gpus = 0;
  if (share_gpus) test::let_threads_share_gpus();
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < (share_gpus ? 1 : 2)) {
    std::printf("skipped: GPUs needed: %d, found: %d\n", share_gpus ? 1 : 2, gpus);
    return 77;
  }
  gpus_used = gpus < 2 ? 1 : 2;
  ask_replay("allreduce_one_shot_2", 1, "replay of one launch of packets", runs);
  ask_replay("allreduce_all_pairs_2", 1, "replay of loads after relaxed signals", runs);
  ask_replay("allreduce_all_pairs_2", 2, "loads after relaxed signals, of the launch before", runs);
  join_peers();
  {
    Pair pair;
    ask_messages(pair, runs);
    ask_packets(pair, runs);
  }
  ask_aliases(runs);
  return failures != 0;
}

}  // namespace
}  // namespace chorale::litmus

int main(int argc, char** argv) {
  uint64_t runs = 1'000'000;
  for (int at = 1; at < argc; ++at) {
    const std::string word = argv[at];
    if (word == "--share-gpus") {
      chorale::litmus::share_gpus = true;
    } else {
      runs = word == "--runs" && at + 1 < argc ? std::strtoull(argv[++at], nullptr, 10) : 0;
    }
    if (runs == 0) break;
  }
  if (runs == 0) {
    std::fprintf(stderr, "usage: %s [--runs N] [--share-gpus]\n", argv[0]);
    return 2;
  }
  try {
    return chorale::litmus::run(runs);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
