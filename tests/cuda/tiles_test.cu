// Sends, receives and collectives of the device library on GPUs, as tests/unit/tiles has them on the CPU:
//   cuda_tiles RANKS
// forks a process a rank, with a GPU each as far as there are some. Exit status 0: all is right.

#include <sys/wait.h>
#include <unistd.h>

#include <chorale/launch.cuh>
#include <chorale/one_sided_window.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cuda/tiles_values.cuh"
#include "tests/fused/quantised_all_gather.hpp"
#include "tests/fused/rms_norm_packets.hpp"
#include "tests/fused/transpose_by_peer.hpp"

using namespace chorale;
using namespace tiles_test;

namespace {

// -- Kernels

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

struct ToTheRight {
  EndpointTable table;
  Leg message;
  __device__ int32_t right() const { return (table.self + 1) % table.ranks; }
  __device__ int32_t left() const { return (table.self + table.ranks - 1) % table.ranks; }
};
struct PacketsToTheRight : ToTheRight {
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    const Leg share = share_of(message, group.id, group.count);
    const Stop stop =
        send_packets<LL16, uint32_t>(group, table.at(right(), group.id), share, CopyProduce{}, deadline);
    if (stop != Stop::none) return stop;
    return recv_packets<LL16, uint32_t>(group, table.at(left(), group.id), share, CopyConsume{}, deadline);
  }
};
/// Group g has g + 1 parts of the message, the first groups perhaps nothing.
struct UnevenToTheRight : ToTheRight {
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint64_t units = units_of(message.bytes), parts = uint64_t(group.count) * (group.count + 1) / 2;
    const auto bound = [&](uint64_t id) {
      const uint64_t bytes = units * (id * (id + 1) / 2) / parts * unit_bytes;
      return id == group.count || bytes > message.bytes ? message.bytes : bytes;
    };
    Leg share = message;
    share.begin = bound(group.id);
    share.bytes = bound(group.id + 1) - share.begin;
    const Endpoint &to = table.at(right(), group.id), &from = table.at(left(), group.id);
    return with_link(to, [&](auto out) {
      return with_link(from, [&](auto in) {
        return sendrecv_tiles<uint32_t, decltype(out), CopyProduce, CopyConsume, None, decltype(in)>(
            group, to, from, share, share, CopyProduce{}, CopyConsume{}, deadline);
      });
    });
  }
};

__global__ void stall(uint64_t ns) {
  const uint64_t end = now_ns() + ns;
  while (now_ns() < end) __nanosleep(1000);
}

// -- A rank

class Rank {
 public:
  explicit Rank(World& world)
      : world(world),
        ranks(world.ranks()),
        self(world.rank()),
        right((self + 1) % ranks),
        left((self + ranks - 1) % ranks) {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~Rank() { cudaStreamDestroy(stream); }

  void ended() const {
    check(cudaStreamSynchronize(stream));
    world.check();
  }

  static RendezvousOptions rings(uint32_t channels, uint32_t depth, uint64_t slot) {
    RendezvousOptions options;
    options.max_channels = channels;
    options.depth = depth;
    options.per_peer_bytes = slot * depth * channels;
    options.packet_bytes = 4096;
    options.space = Space::device;
    return options;
  }

  World& world;
  const int ranks, self, right, left;
  cudaStream_t stream = nullptr;
};

Leg leg_of(const Buffer& in, const Buffer& out, uint64_t n) {
  Leg leg;
  leg.in = in.data();
  leg.out = out.data();
  leg.bytes = n * 4;
  leg.elem = 4;
  return leg;
}

void test_replays(const Rank& rank, Transport& transport, const Buffer& in, const Buffer& out, uint64_t n,
                  const LaunchConfig& config, uint64_t replays) {
  const AllReduce kernel{transport.table(), leg_of(in, out, n)};
  cudaGraph_t graph;
  cudaGraphExec_t replayed;
  check(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal));
  launch(transport, kernel, config, {rank.stream});
  check(cudaStreamEndCapture(rank.stream, &graph));
  check(cudaGraphInstantiate(&replayed, graph, 0));
  for (uint64_t replay = 0; replay < replays && failures == 0; ++replay) {
    in.fill(rank.stream, replay * 100 + rank.self);
    check(cudaGraphLaunch(replayed, rank.stream));
    rank.ended();
    out.expect("all_reduce, replayed", rank.stream, n, SumOf{replay * 100, rank.ranks});
  }
  check(cudaGraphExecDestroy(replayed));
  check(cudaGraphDestroy(graph));
}

/// \param packet_bytes  of the transport
void test_shape(const Rank& rank, Transport& links, uint64_t n, const LaunchConfig& config,
                uint64_t packet_bytes) {
  const Lane lane{rank.stream};
  Transport* const transport = &links;
  Buffer in(n * rank.ranks), out(n * rank.ranks);

  in.fill(rank.stream, rank.self);
  out.clear(rank.stream);
  sendrecv(*transport, in.data(), out.data(), n, rank.right, rank.left, CopyProduce{},
           AddConsume<uint32_t>{7}, config, lane);
  rank.ended();
  out.expect("sendrecv", rank.stream, n, Sent{uint64_t(rank.left), 1, 7});

  out.clear(rank.stream);
  launch(*transport, UnevenToTheRight{{transport->table(), leg_of(in, out, n)}}, config, lane);
  rank.ended();
  out.expect("uneven shares", rank.stream, n, Sent{uint64_t(rank.left)});

  launch(*transport, AllToAll{transport->table(), leg_of(in, out, n), {n * 4, n * 4}}, config, lane);
  rank.ended();
  out.expect("all_to_all", rank.stream, n * rank.ranks, Exchanged{n, uint64_t(rank.self)});

  test_replays(rank, *transport, in, out, n, config, n <= 1 << 14 ? 100 : 5);

  if (n * 4 / config.blocks + 16 <= packet_bytes) {
    in.fill(rank.stream, rank.self);
    for (int call = 0; call < 5; ++call) {
      out.clear(rank.stream);
      launch(*transport, PacketsToTheRight{{transport->table(), leg_of(in, out, n)}}, config, lane);
      rank.ended();
      out.expect("packets", rank.stream, n, Sent{uint64_t(rank.left)});
    }
  }
}

/// Links over the copy engine, and one kernel over both kinds: two domains.
void test_port_and_mesh(const Rank& rank) {
  for (const uint64_t n : {0, 1000, 70001, 1 << 20}) {
    for (const uint32_t blocks : {1u, 4u}) {
      RendezvousOptions options = Rank::rings(blocks, 4, n < 1 << 20 ? 4 << 10 : 64 << 10);
      const std::shared_ptr<Transport> direct = direct_rendezvous(rank.world, options);
      options.packet_bytes = 0;
      const std::shared_ptr<Transport> port = port_rendezvous(rank.world, options, ProxyKind::copy_engine);
      test_shape(rank, *port, n, {blocks, 256}, 0);
      port->hand_over();
      const auto both = mesh(direct, port, rank.ranks / 2);
      test_shape(rank, *both, n, {blocks, 256}, 0);
    }
  }
}

struct PutToTheRight {
  WindowView view;
  const uint32_t* in;
  uint64_t bytes, round;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    const int32_t right = (view.self + 1) % view.ranks, left = (view.self + view.ranks - 1) % view.ranks;
    put_signal(group, view, right, 64, in, bytes, 1);
    const Stop stop = wait_signal_from(group, view, left, 1, Cmp::ge, round, deadline);
    return stop != Stop::none ? stop : barrier(group, view, 0, deadline);
  }
};
void test_windows(const Rank& rank) {
  const uint64_t n = 12345;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(1, 2, 16));
  const OneSidedWindow window = OneSidedWindow::create(rank.world, 64 + n * 4, 2, 1, Space::device);
  Buffer in(n);
  for (uint64_t round = 1; round <= 5; ++round) {
    in.fill(rank.stream, round * 100 + rank.self);
    launch(*transport, PutToTheRight{window.view(), in.data(), n * 4, round}, {1, 256}, {rank.stream});
    rank.ended();
    expect_values("windows", rank.stream, reinterpret_cast<const uint32_t*>(window.local() + 64), n,
                  Sent{round * 100 + uint64_t(rank.left)});
    rank.world.barrier();  // the next round overwrites it
  }
}

/// One way, from rank 0 to rank 1: rings of one slot, too.
void test_depths(const Rank& rank) {
  const uint64_t n = 100003;
  Buffer in(n), out(n);
  for (uint32_t depth = 1; depth <= 8; ++depth) {
    const auto transport = direct_rendezvous(rank.world, Rank::rings(4, depth, 4096));
    in.fill(rank.stream, depth);
    out.clear(rank.stream);
    if (rank.self == 0) send(*transport, in.data(), n, 1, ScaleProduce<uint32_t>{3}, {4, 256}, {rank.stream});
    if (rank.self == 1) recv(*transport, out.data(), n, 0, CopyConsume{}, {4, 256}, {rank.stream});
    rank.ended();
    if (rank.self == 1) out.expect("depths", rank.stream, n, Sent{depth, 3});
  }
}

/// The sender runs 12 calls over a ring of four slots while the receiver sleeps; each payload is another.
void test_stalled_receiver(const Rank& rank) {
  const uint64_t n = 4096, calls = 12;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 4, n * 4 / 2));
  std::vector<std::unique_ptr<Buffer>> data;
  for (uint64_t call = 0; call < calls; ++call) {
    data.push_back(std::make_unique<Buffer>(n));
    rank.self == 0 ? data.back()->fill(rank.stream, 1000 + call) : data.back()->clear(rank.stream);
  }
  if (rank.self == 1) stall<<<1, 1, 0, rank.stream>>>(50'000'000);
  for (uint64_t call = 0; call < calls; ++call) {
    if (rank.self == 0) send(*transport, data[call]->data(), n, 1, CopyProduce{}, {2, 128}, {rank.stream});
    if (rank.self == 1) recv(*transport, data[call]->data(), n, 0, CopyConsume{}, {2, 128}, {rank.stream});
  }
  rank.ended();
  for (uint64_t call = 0; call < calls && rank.self == 1; ++call) {
    data[call]->expect("a stalled receiver", rank.stream, n, Sent{1000 + call});
  }
}

/// Rank 1 sends more than the ring holds, rank 0 takes nothing and aborts; then all start anew.
void test_abort(const Rank& rank) {
  const uint64_t n = 1 << 20;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(4, 2, 4096));
  Buffer in(n), out(n);
  in.fill(rank.stream, rank.self);
  out.clear(rank.stream);
  if (rank.self == 1) send(*transport, in.data(), n, 0, CopyProduce{}, {4, 256}, {rank.stream});
  if (rank.self == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    rank.world.abort("the test wants it");
  }
  check(cudaStreamSynchronize(rank.stream));
  const auto aborted = [&] {
    try {
      rank.world.check();
      return false;
    } catch (const RunError& error) {
      if (error.reason != RunError::Reason::aborted) throw;
      return true;
    }
  };
  for (int look = 0; !aborted(); ++look) {
    if (look == 5000) throw std::runtime_error("nobody heard of the abort");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  rank.world.reset();
  transport->reset();
  sendrecv(*transport, in.data(), out.data(), n, rank.right, rank.left, CopyProduce{}, CopyConsume{},
           {4, 256}, {rank.stream});
  rank.ended();
  out.expect("after an abort", rank.stream, n, Sent{uint64_t(rank.left)});
}

// -- The programs of docs/fused-kernels.md. Results are small, and are compared on the host.

template <class T>
std::vector<T> to_host(const T* data, uint64_t n) {
  std::vector<T> values(n);
  check(cudaMemcpy(values.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}
template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) {
    check(cudaMalloc(&data_, values.size() * sizeof(T)));
    check(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    check(cudaStreamSynchronize(nullptr));
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

template <class Kernel>
void test_transpose(const Rank& rank, const char* what, uint32_t rows, uint32_t cols, uint32_t each,
                    const Kernel& make) {
  const uint64_t n = uint64_t(rows) * cols * rank.ranks;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(4, 3, 16 << 10));
  Buffer in(n), out(n);
  for (int call = 0; call < 3; ++call) {
    in.fill(rank.stream, call * 100 + rank.self);
    out.clear(rank.stream);
    launch(*transport, make(TransposeByPeer<uint32_t>{transport->table(), in.data(), out.data(), rows, cols}),
           {each * uint32_t(rank.ranks), 256}, {rank.stream});
    rank.ended();
    out.expect(what, rank.stream, n,
               Transposed{uint64_t(call) * 100, uint32_t(rank.self), uint32_t(rank.ranks), rows, cols});
  }
}

template <class Kernel>
void test_rms_norm(const Rank& rank, const char* what, uint32_t rows, uint32_t cols, uint32_t blocks) {
  const auto value = [](int rank, uint64_t at) { return float((at * 31 + rank * 17) % 53); };
  const auto transport = direct_rendezvous(rank.world, Rank::rings(blocks, 2, 16));
  const uint64_t n = uint64_t(rows) * cols;
  std::vector<float> input(n), kept(n), ones(cols, 0.5f);
  for (uint64_t at = 0; at < n; ++at) {
    input[at] = value(rank.self, at);
    kept[at] = float(at % 41);
  }
  const OnDevice<float> in(input), residual(kept), weight(ones), out(input);
  for (int call = 0; call < 3; ++call) {
    launch(
        *transport,
        Kernel{
            {transport->table(), in.data(), out.data(), rows, cols, {residual.data(), weight.data(), 1e-5f}}},
        {blocks, 32}, {rank.stream});
    rank.ended();
    const std::vector<float> got = to_host(out.data(), n), left = to_host(residual.data(), n);
    for (uint64_t row = 0; row < rows && failures == 0; ++row) {
      double squares = 0;
      for (uint64_t at = row * cols; at < (row + 1) * cols; ++at) {
        for (int from = 0; from < rank.ranks; ++from) kept[at] += value(from, at);
        squares += double(kept[at]) * kept[at];
      }
      const double scale = 0.5 / std::sqrt(squares / cols + 1e-5);
      for (uint64_t at = row * cols; at < (row + 1) * cols; ++at) {
        if (left[at] == kept[at] && std::fabs(got[at] - kept[at] * scale) <= 1e-5 * std::fabs(got[at]))
          continue;
        std::printf("%s: call %d, element %llu is %f, not %f\n", what, call, (unsigned long long)at, got[at],
                    kept[at] * scale);
        ++failures;
        break;
      }
    }
  }
}

void test_quantised_all_gather(const Rank& rank) {
  const uint64_t n = 128 * 37 + 40;
  const auto of = [n](int rank) {
    std::vector<float> values(n);
    for (uint64_t at = 0; at < n; ++at) values[at] = float((at * 131 + rank * 71) % 1009) * 0.37f - 100;
    return values;
  };
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 2, 288 * 4));
  const OnDevice<float> in(of(rank.self)), out(std::vector<float>(n * rank.ranks, -1.0f));
  launch(*transport, QuantisedAllGather<float>{transport->table(), in.data(), out.data(), n}, {2, 128},
         {rank.stream});
  rank.ended();
  const std::vector<float> got = to_host(out.data(), n * rank.ranks);
  for (int from = 0; from < rank.ranks; ++from) {
    const std::vector<float> theirs = of(from);
    for (uint64_t at = 0; at < n; ++at) {
      // Three bits of mantissa, and a scale that no element is beyond.
      if (std::fabs(got[from * n + at] - theirs[at]) <= std::fabs(theirs[at]) / 15 + 1.5f) continue;
      std::printf("quantised all-gather: element %llu of rank %d is %f, not %f\n", (unsigned long long)at,
                  from, got[from * n + at], theirs[at]);
      ++failures;
      return;
    }
  }
}

void test_fused(const Rank& rank) {
  for (const uint32_t rows : {300u, 64u}) {
    test_transpose(rank, "transposed tiles", rows, 37, 4, [](const TransposeByPeer<uint32_t>& work) {
      return TransposeTilesByPeer<uint32_t>{work, 5};
    });
  }
  test_transpose(rank, "transposed packets", 30, 21, 2,
                 [](const TransposeByPeer<uint32_t>& work) { return TransposePackets<uint32_t>{work}; });
  // Rows of fewer and of more units than threads; more rows than blocks.
  test_rms_norm<RmsNormOneShot<float>>(rank, "one-shot RMSNorm", 1, 32, 1);
  test_rms_norm<RmsNormOneShot<float>>(rank, "one-shot RMSNorm", 5, 200, 3);
  test_rms_norm<RmsNormTwoShot<float>>(rank, "two-shot RMSNorm", 5, 200, 2);
  test_rms_norm<RmsNormTwoShot<float>>(rank, "two-shot RMSNorm", 1, 32, 1);
  test_quantised_all_gather(rank);
}

int run_rank(int self, int ranks, const std::string& address) {
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus));
  check(cudaSetDevice(self % gpus));
  JoinOptions join;
  join.timeout = std::chrono::seconds(10);
  World world = World::join(address, self, ranks, join);
  Rank rank(world);
  const auto say = [&](const char* what) {
    world.barrier();
    if (self == 0) std::printf("%s\n", what);
  };
  say("depths");
  test_depths(rank);
  say("a stalled receiver");
  test_stalled_receiver(rank);
  say("an abort");
  test_abort(rank);
  say("windows");
  test_windows(rank);
  say("links over the copy engine, and both kinds in one kernel");
  test_port_and_mesh(rank);
  say("fused kernels");
  test_fused(rank);
  uint32_t depth = 2;
  for (const uint64_t n : {0, 1, 3, 4, 5, 1000, 1 << 14, (1 << 20) + 1, 16 << 20}) {
    say(("shapes of " + std::to_string(n) + " elements").c_str());
    for (const uint32_t blocks : {1u, 8u, 32u}) {
      const RendezvousOptions options = Rank::rings(blocks, depth, n > 1 << 20 ? 256 << 10 : 4 << 10);
      const auto transport = direct_rendezvous(world, options);
      test_shape(rank, *transport, n, {blocks, blocks == 1 ? 32u : 512u}, options.packet_bytes);
      depth = depth == 8 ? 2 : depth + 1;  // every depth with some of the sizes
    }
  }
  world.barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // A time limit may end this from outside: what was said until then is to be seen.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
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
