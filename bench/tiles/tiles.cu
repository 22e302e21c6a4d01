// Sends and receives of the device library between two GPUs, beside the copy engine and NCCL, in one run:
//   bench_tiles [LARGEST_MIB]
// A line for each size and number of blocks. Every result is compared with what was sent before it is timed.
// Exit status 0: the bars of bench/README.md are met, 1: they are not, 2: a result is wrong, 3: it did not
// run.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chorale/launch.cuh>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "executor/cuda/peer_memory.hpp"
#include "tools/bench/nccl.hpp"

using namespace chorale;

namespace {

void check(cudaError_t result) { detail::check_cuda(result, "bench_tiles"); }

__global__ void fill(uint32_t* data, uint64_t n, uint32_t seed) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < n;
       at += uint64_t(gridDim.x) * blockDim.x) {
    data[at] = uint32_t(at * 2654435761u) ^ seed;
  }
}
__global__ void compare(const uint32_t* data, uint64_t n, uint32_t seed, uint32_t* wrong) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < n;
       at += uint64_t(gridDim.x) * blockDim.x) {
    if (data[at] != (uint32_t(at * 2654435761u) ^ seed)) atomicAdd(wrong, 1u);
  }
}

enum class Way { one, both };

constexpr uint64_t most_as_packets = 64 << 10;  ///< of a message

/// Half of the blocks send and half receive.
struct BothWays {
  EndpointTable table;
  Leg message;
  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const Split role = group.split_interleaved(2);
    const Endpoint& e = table.at(1 - table.self, role.group.id);
    const Leg share = share_of(message, role.group.id, role.group.count);
    return role.part == 0 ? send_tiles<uint32_t>(role.group, e, share, CopyProduce{}, deadline)
                          : recv_tiles<uint32_t>(role.group, e, share, CopyConsume{}, deadline);
  }
};

/// One way, as packets; in both ways each block sends and receives its share.
struct AsPackets {
  EndpointTable table;
  Leg message;
  bool sends, receives;
  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(1 - table.self, group.id);
    const Leg share = share_of(message, group.id, group.count);
    Stop stop = Stop::none;
    if (sends) stop = send_packets<LL16, uint32_t>(group, e, share, CopyProduce{}, deadline);
    if (stop == Stop::none && receives)
      stop = recv_packets<LL16, uint32_t>(group, e, share, CopyConsume{}, deadline);
    return stop;
  }
};

/// Calls in a CUDA graph.
class Graph {
 public:
  template <class Call>
  Graph(cudaStream_t stream, int calls, const Call& call) : stream_(stream) {
    cudaGraph_t graph;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int at = 0; at < calls; ++at) call();
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&graph_, graph, 0));
    check(cudaGraphDestroy(graph));
  }
  ~Graph() { cudaGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;

  void launch() const { check(cudaGraphLaunch(graph_, stream_)); }

 private:
  cudaGraphExec_t graph_ = nullptr;
  cudaStream_t stream_;
};

class Bench {
 public:
  Bench(World& world, uint64_t largest) : world_(world), imports_(world), receives_(world.rank() == 1) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cudaEventCreate(&begin_));
    check(cudaEventCreate(&end_));
    check(cudaMalloc(&in_, largest));
    check(cudaMalloc(&out_, largest));
    check(cudaMalloc(&wrong_, sizeof(uint32_t)));
    peers_ = cuda::PeerMemory::exchange(world, imports_, out_, largest);
    nccl_ = tools::Nccl::join(world, why_no_nccl_);
  }

  /// Microseconds of one call on the slower rank; the result is checked first.
  template <class Call>
  double time(Way way, uint64_t bytes, const Call& call) {
    const uint64_t n = bytes / 4;
    fill<<<64, 256, 0, stream_>>>(in_, n, uint32_t(world_.rank()) + 1);
    check(cudaMemsetAsync(out_, 0xee, bytes, stream_));
    check(cudaStreamSynchronize(stream_));
    world_.barrier();
    call();
    check(cudaStreamSynchronize(stream_));
    world_.barrier();
    if (way == Way::both || receives_) {
      check(cudaMemsetAsync(wrong_, 0, sizeof(uint32_t), stream_));
      compare<<<64, 256, 0, stream_>>>(out_, n, uint32_t(1 - world_.rank()) + 1, wrong_);
      uint32_t wrong = 0;
      check(cudaMemcpyAsync(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost, stream_));
      check(cudaStreamSynchronize(stream_));
      if (wrong != 0) {
        std::fprintf(stderr, "%u of %llu elements are wrong\n", wrong, (unsigned long long)n);
        std::_Exit(2);
      }
    }
    const int calls = bytes <= 1 << 20 ? 200 : bytes <= 64 << 20 ? 50 : 10;
    const Graph graph(stream_, calls, call);
    graph.launch();
    check(cudaStreamSynchronize(stream_));
    double best = 1e30;
    for (int round = 0; round < 5; ++round) {
      world_.barrier();
      check(cudaEventRecord(begin_, stream_));
      graph.launch();
      check(cudaEventRecord(end_, stream_));
      check(cudaStreamSynchronize(stream_));
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin_, end_));
      const double mine = double(ms) * 1000 / calls;
      double slowest = 0;
      for (const auto& all : world_.allgather(std::as_bytes(std::span(&mine, 1)))) {
        double theirs;
        std::memcpy(&theirs, all.data(), sizeof theirs);
        slowest = std::max(slowest, theirs);
      }
      best = std::min(best, slowest);
    }
    return best;
  }

  /// The copy engine: the sender writes into the peer's memory.
  double copy_engine(Way way, uint64_t bytes) {
    return time(way, bytes, [&] {
      if (way == Way::one && receives_) return;
      check(cudaMemcpyAsync(peers_.at(1 - world_.rank()), in_, bytes, cudaMemcpyDeviceToDevice, stream_));
    });
  }

  double nccl(Way way, uint64_t bytes) {
    if (!nccl_) return 0;
    return time(way, bytes, [&] {
      nccl_->exchange(way == Way::both || !receives_ ? in_ : nullptr,
                      way == Way::both || receives_ ? out_ : nullptr, bytes, 1 - world_.rank(), stream_);
    });
  }

  double tiles(Way way, uint64_t bytes, Transport& transport, uint32_t blocks) {
    Leg leg;
    leg.in = in_;
    leg.out = out_;
    leg.bytes = bytes;
    leg.elem = 4;
    const Lane lane{stream_};
    return time(way, bytes, [&] {
      if (way == Way::both) {
        launch(transport, BothWays{transport.table(), leg}, {blocks, 512}, lane);
      } else if (receives_) {
        recv<uint32_t>(transport, leg, 0, CopyConsume{}, {blocks, 512}, lane);
      } else {
        send<uint32_t>(transport, leg, 1, CopyProduce{}, {blocks, 512}, lane);
      }
    });
  }

  double packets(Way way, uint64_t bytes, Transport& transport, uint32_t blocks) {
    Leg leg;
    leg.in = in_;
    leg.out = out_;
    leg.bytes = bytes;
    leg.elem = 4;
    const AsPackets kernel{transport.table(), leg, way == Way::both || !receives_,
                           way == Way::both || receives_};
    return time(way, bytes, [&] { launch(transport, kernel, {blocks, 512}, Lane{stream_}); });
  }

  const std::string& why_no_nccl() const { return why_no_nccl_; }

 private:
  World& world_;
  cuda::Imports imports_;
  cuda::PeerMemory peers_;
  std::unique_ptr<tools::Nccl> nccl_;
  std::string why_no_nccl_;
  const bool receives_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  uint32_t *in_ = nullptr, *out_ = nullptr, *wrong_ = nullptr;
};

int run_rank(int rank, const std::string& address, uint64_t largest) {
  check(cudaSetDevice(rank));
  World world = World::join(address, rank, 2);
  Bench bench(world, largest);
  if (rank == 0 && !bench.why_no_nccl().empty())
    std::printf("# without NCCL: %s\n", bench.why_no_nccl().c_str());
  if (rank == 0)
    std::printf("%-5s %-7s %11s %6s %10s %9s %11s %8s\n", "way", "as", "bytes", "blocks", "us", "GB/s",
                "of engine", "of NCCL");
  bool met = true;
  for (const Way way : {Way::one, Way::both}) {
    for (uint64_t bytes = 1024; bytes <= largest; bytes *= 4) {
      const double engine = bench.copy_engine(way, bytes), nccl = bench.nccl(way, bytes);
      double best = 1e30, best_of_32 = 1e30;
      const auto note = [&](const char* as, uint32_t blocks, double us) {
        best = std::min(best, us);
        if (blocks <= 32) best_of_32 = std::min(best_of_32, us);
        if (rank != 0) return;
        std::printf("%-5s %-7s %11llu %6u %10.2f %9.1f %11.3f %8.3f\n", way == Way::one ? "one" : "both", as,
                    (unsigned long long)bytes, blocks, us, double(bytes) / us / 1000, engine / us,
                    nccl > 0 ? nccl / us : 0.0);
      };
      // Long messages take long tiles, whose signals are fewer.
      const uint64_t slot = bytes < 16 << 20 ? 128 << 10 : 512 << 10;
      for (uint32_t blocks = way == Way::one ? 1 : 2; blocks <= 64; blocks *= 2) {
        RendezvousOptions options;
        options.max_channels = blocks;
        options.depth = 4;
        options.per_peer_bytes = slot * options.depth * blocks;
        if (bytes <= most_as_packets) options.packet_bytes = bytes / blocks + 64;
        options.space = Space::device;
        const auto transport = direct_rendezvous(world, options);
        note("tiles", blocks, bench.tiles(way, bytes, *transport, blocks));
        if (bytes <= most_as_packets) note("packets", blocks, bench.packets(way, bytes, *transport, blocks));
      }
      if (way == Way::one && bytes == 256 << 20) met &= engine / best_of_32 >= 0.92;
      if (bytes >= 1 << 20 && nccl > 0) met &= nccl / best >= 1;
      if (way == Way::one && bytes == 1024) met &= best < 4;
    }
  }
  return met ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t largest = uint64_t(argc > 1 ? std::atoi(argv[1]) : 1024) << 20;
  tools::quieten_nccl();
  const std::string address = "shm://bench_tiles." + std::to_string(getpid());
  pid_t ranks[2];
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = fork();  // before CUDA is touched, which does not survive it
    if (ranks[rank] != 0) continue;
    int status = 3;
    try {
      status = run_rank(rank, address, largest);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    }
    std::fflush(stdout);
    std::_Exit(status);
  }
  int worst = 0;
  for (const pid_t rank : ranks) {
    int status = 0;
    waitpid(rank, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  }
  return worst;
}
