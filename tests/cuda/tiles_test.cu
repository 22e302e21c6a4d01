// Sends, receives and collectives of the device library on GPUs, as tests/unit/tiles has them on the CPU:
//   cuda_tiles RANKS
// forks a process a rank, with a GPU each as far as there are some. Exit status 0: all is right.

#include <sys/wait.h>
#include <unistd.h>

#include <chorale/launch.cuh>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace chorale;

namespace {

int failures = 0;

void check(cudaError_t result) { detail::check_cuda(result, "a test"); }

uint32_t value_at(uint64_t message, uint64_t index) {
  uint64_t value = message * 1000003 + index + 1;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  return uint32_t((value ^ (value >> 27)) % 1000);
}

/// Device memory, and what is to be in it.
class Buffer {
 public:
  explicit Buffer(uint64_t n) : n_(n) { check(cudaMalloc(&data_, n * 4 + 16)); }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;

  uint32_t* data() const { return data_; }
  void fill(uint64_t message) {
    std::vector<uint32_t> values(n_);
    for (uint64_t at = 0; at < n_; ++at) values[at] = value_at(message, at);
    check(cudaMemcpy(data_, values.data(), n_ * 4, cudaMemcpyHostToDevice));
    settle();
  }
  void clear() {
    check(cudaMemset(data_, 0xee, n_ * 4));
    settle();
  }

  template <class F>
  void expect(const char* what, uint64_t n, const F& expected) const {
    std::vector<uint32_t> values(n_);
    check(cudaMemcpy(values.data(), data_, n_ * 4, cudaMemcpyDeviceToHost));
    for (uint64_t at = 0; at < n; ++at) {
      if (values[at] == expected(at)) continue;
      std::printf("%s: element %llu is %u, not %u\n", what, (unsigned long long)at, values[at], expected(at));
      ++failures;
      return;
    }
  }

 private:
  /// Copies and fills may return before they have ended, and the streams of the tests do not wait for them.
  static void settle() { check(cudaStreamSynchronize(nullptr)); }

  uint64_t n_;
  uint32_t* data_ = nullptr;
};

struct AllReduce {
  EndpointTable table;
  Leg message;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    return all_reduce<ReduceOp::sum, uint32_t>(group, table, message, CopyProduce{}, CopyConsume{}, deadline);
  }
};
struct AllToAll {
  EndpointTable table;
  Leg message;
  Shards shards;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    return all_to_all<uint32_t>(group, table, message, shards, CopyProduce{}, AddConsume<uint32_t>{1},
                                deadline);
  }
};
struct PacketsToTheRight {
  EndpointTable table;
  Leg message;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    const Leg share = share_of(message, group.id, group.count);
    const int32_t right = (table.self + 1) % table.ranks, left = (table.self + table.ranks - 1) % table.ranks;
    const Stop stop =
        send_packets<LL16, uint32_t>(group, table.at(right, group.id), share, CopyProduce{}, deadline);
    if (stop != Stop::none) return stop;
    return recv_packets<LL16, uint32_t>(group, table.at(left, group.id), share, CopyConsume{}, deadline);
  }
};

Leg leg_of(const Buffer& in, const Buffer& out, uint64_t n) {
  Leg leg;
  leg.in = in.data();
  leg.out = out.data();
  leg.bytes = n * 4;
  leg.elem = 4;
  return leg;
}

void test_shape(World& world, uint64_t n, const RendezvousOptions& options, const LaunchConfig& config,
                Lane lane) {
  const int ranks = world.ranks(), self = world.rank(), right = (self + 1) % ranks,
            left = (self + ranks - 1) % ranks;
  const auto transport = direct_rendezvous(world, options);
  Buffer in(n * ranks), out(n * ranks);
  const auto ended = [&] {
    check(cudaStreamSynchronize(static_cast<cudaStream_t>(lane.stream)));
    world.check();
  };

  in.fill(self);
  out.clear();
  sendrecv(*transport, in.data(), out.data(), n, right, left, CopyProduce{}, AddConsume<uint32_t>{7}, config,
           lane);
  ended();
  out.expect("sendrecv", n, [&](uint64_t at) { return value_at(left, at) + 7; });

  if (self == 0) send(*transport, in.data(), n, 1, ScaleProduce<uint32_t>{3}, config, lane);
  if (self == 1) recv(*transport, out.data(), n, 0, CopyConsume{}, config, lane);
  ended();
  if (self == 1) out.expect("send", n, [&](uint64_t at) { return value_at(0, at) * 3; });

  launch(*transport, AllToAll{transport->table(), leg_of(in, out, n), {n * 4, n * 4}}, config, lane);
  ended();
  out.expect("all_to_all", n * ranks,
             [&](uint64_t at) { return value_at(at / n, uint64_t(self) * n + at % n) + 1; });

  // One launch captured, and replayed with new data each time.
  const auto stream = static_cast<cudaStream_t>(lane.stream);
  const AllReduce kernel{transport->table(), leg_of(in, out, n)};
  cudaGraph_t graph;
  cudaGraphExec_t replayed;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  launch(*transport, kernel, config, lane);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&replayed, graph, 0));
  for (uint64_t replay = 0; replay < 100; ++replay) {
    in.fill(replay * 100 + self);
    check(cudaGraphLaunch(replayed, stream));
    ended();
    out.expect("all_reduce, replayed", n, [&](uint64_t at) {
      uint32_t sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += value_at(replay * 100 + rank, at);
      return sum;
    });
    if (failures) break;
  }
  check(cudaGraphExecDestroy(replayed));
  check(cudaGraphDestroy(graph));

  if (options.packet_bytes != 0 && n * 4 / config.blocks + 16 <= options.packet_bytes) {
    in.fill(self);
    for (int call = 0; call < 5; ++call) {
      out.clear();
      launch(*transport, PacketsToTheRight{transport->table(), leg_of(in, out, n)}, config, lane);
      ended();
      out.expect("packets", n, [&](uint64_t at) { return value_at(left, at); });
    }
  }
}

int run_rank(int rank, int ranks, const std::string& address) {
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus));
  check(cudaSetDevice(rank % gpus));
  World world = World::join(address, rank, ranks);
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (const uint64_t n : {1, 3, 4, 5, 1000, 1 << 14, (1 << 20) + 1, 16 << 20}) {
    for (const uint32_t blocks : {1u, 8u, 32u}) {
      for (const uint32_t depth : {2u, 4u}) {
        RendezvousOptions options;
        options.max_channels = blocks;
        options.depth = depth;
        options.per_peer_bytes = uint64_t(n > 1 << 20 ? 256 << 10 : 4 << 10) * blocks * depth;
        options.packet_bytes = 4096;
        options.space = Space::device;
        test_shape(world, n, options, {blocks, blocks == 1 ? 32u : 512u}, {stream});
      }
    }
  }
  check(cudaStreamDestroy(stream));
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::string address = "shm://cuda_tiles." + std::to_string(getpid());
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();  // before CUDA is touched, which does not survive it
    if (child == 0) {
      int status = 3;
      try {
        status = run_rank(rank, ranks, address);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      std::fflush(stdout);
      std::_Exit(status);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status;
  }
  return failed == 0 ? 0 : 1;
}
