// Tests sends, receives and collectives of the device library on GPUs, as tests/unit/tiles does on the CPU:
//   cuda_tiles RANKS [--quick] [--share-gpus [--processes]]
// It forks one process per rank, with a GPU each. With --share-gpus several ranks may share a GPU. They are
// then threads of one process or, with --processes, processes that take turns on it. With --quick it sends
// only short messages, so that it is short enough for compute-sanitizer. It exits with 0 if everything is
// right.

#include <chorale/launch.cuh>
#include <chorale/one_sided_window.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/rank_program.hpp"
#include "tests/cuda/tiles_counts.cuh"
#include "tests/cuda/tiles_experts.cuh"
#include "tests/cuda/tiles_forms.cuh"
#include "tests/cuda/tiles_fused.cuh"
#include "tests/cuda/tiles_packets.cuh"
#include "tests/cuda/tiles_rank.cuh"
#include "tests/cuda/tiles_refusals.cuh"
#include "tests/cuda/tiles_replays.cuh"
#include "tests/cuda/tiles_shapes.cuh"
#include "tests/cuda/tiles_types.cuh"

using namespace chorale;
using namespace tiles_test;

namespace {

__global__ void stall(uint64_t ns) {
  const uint64_t end = now_ns() + ns;
  while (now_ns() < end) __nanosleep(1000);
}

/// Tests links over the copy engine, and one kernel over both kinds: two domains.
void test_port_and_mesh(const Rank& rank, bool quick) {
  for (const uint64_t n : {0, 1000, 70001, 1 << 20}) {
    if (quick && n > 1000) break;
    for (const uint32_t blocks : {1u, 4u}) {
      RendezvousOptions options = Rank::rings(blocks, 4, n < 1 << 20 ? 4 << 10 : 64 << 10);
      const std::shared_ptr<Transport> direct = direct_rendezvous(rank.world, options);
      options.packet_bytes = 0;
      const std::shared_ptr<Transport> port = port_rendezvous(rank.world, options, ProxyKind::copy_engine);
      test_shape(rank, *port, n, {blocks, 256}, 0, quick);
      port->hand_over();
      const auto both = mesh(direct, port, rank.ranks / 2);
      test_shape(rank, *both, n, {blocks, 256}, 0, quick);
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
/// Gets the data in the window of the rank on the left, after that rank has signalled that they are there.
struct GetFromTheLeft {
  WindowView view;
  uint32_t* out;
  uint64_t bytes, round;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    const int32_t right = (view.self + 1) % view.ranks, left = (view.self + view.ranks - 1) % view.ranks;
    signal_peer(group, view, right, 0);
    const Stop stop = wait_signal_from(group, view, left, 0, Cmp::ge, round, deadline);
    if (stop == Stop::none) get(group, view, left, 64, out, bytes);
    return stop;
  }
};
void test_windows(const Rank& rank) {
  const uint64_t n = 12345;
  const int left_of_left = (rank.left + rank.ranks - 1) % rank.ranks;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(1, 2, 16));
  const OneSidedWindow window = OneSidedWindow::create(rank.world, 64 + n * 4, 2, 1, Space::device);
  Buffer in(n), got(n);
  rank.ready();
  for (uint64_t round = 1; round <= 5; ++round) {
    in.fill(rank.stream, round * 100 + rank.self);
    launch(*transport, PutToTheRight{window.view(), in.data(), n * 4, round}, {1, 256}, {rank.stream});
    rank.ended();
    expect_values("windows", rank.stream, reinterpret_cast<const uint32_t*>(window.local() + 64), n,
                  Sent{round * 100 + uint64_t(rank.left)});
    launch(*transport, GetFromTheLeft{window.view(), got.data(), n * 4, round}, {1, 256}, {rank.stream});
    rank.ended();
    got.expect("windows, read by a peer", rank.stream, n, Sent{round * 100 + uint64_t(left_of_left)});
    rank.world.barrier();  // the next round overwrites it
  }
}

/// Sends one way, from rank 0 to rank 1, also over rings of one slot.
void test_depths(const Rank& rank) {
  const uint64_t n = 100003;
  Buffer in(n), out(n);
  for (uint32_t depth = 1; depth <= 8; ++depth) {
    const auto transport = direct_rendezvous(rank.world, Rank::rings(4, depth, 4096));
    rank.ready();
    in.fill(rank.stream, depth);
    out.clear(rank.stream);
    if (rank.self == 0) send(*transport, in.data(), n, 1, ScaleProduce<uint32_t>{3}, {4, 256}, {rank.stream});
    if (rank.self == 1) recv(*transport, out.data(), n, 0, CopyConsume{}, {4, 256}, {rank.stream});
    rank.ended();
    if (rank.self == 1) out.expect("depths", rank.stream, n, Sent{depth, 3});
  }
}

/// Makes the sender run 12 calls over a ring of four slots while the receiver sleeps. Each payload is
/// different.
void test_stalled_receiver(const Rank& rank) {
  const uint64_t n = 4096, calls = 12;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 4, n * 4 / 2));
  std::vector<std::unique_ptr<Buffer>> data;
  for (uint64_t call = 0; call < calls; ++call) {
    data.push_back(std::make_unique<Buffer>(n));
    rank.self == 0 ? data.back()->fill(rank.stream, 1000 + call) : data.back()->clear(rank.stream);
  }
  rank.ready();
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

/// Rank 1 sends more than the ring holds, while rank 0 receives nothing and aborts. Then all start again.
void test_abort(const Rank& rank) {
  const uint64_t n = 1 << 20;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(4, 2, 4096));
  Buffer in(n), out(n);
  rank.ready();
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

/// \return whether everything is right
bool run_rank(World& world, bool quick) {
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus));
  check(cudaSetDevice(world.rank() % gpus));
  Rank rank(world);
  const auto say = [&](const char* what) {
    world.barrier();
    if (rank.self == 0) std::printf("%s\n", what);
  };
  say("refusals");
  test_refusals(rank);
  say("depths");
  test_depths(rank);
  say("a stalled receiver");
  test_stalled_receiver(rank);
  say("an abort");
  test_abort(rank);
  say("messages of every form");
  test_forms(rank);
  say("hooks of other types");
  test_types(rank);
  say("packets of every form");
  test_packets(rank, quick);
  say("graphs of the launchers and of windows");
  test_replays_of_launchers(rank, quick);
  say("windows");
  test_windows(rank);
  say("links over the copy engine, and both kinds in one kernel");
  test_port_and_mesh(rank, quick);
  say("counts in memory");
  test_all_to_all_v(rank, quick);
  say("tokens to experts and back");
  test_expert_exchange(rank, quick);
  say("fused kernels");
  test_fused(rank);
  uint32_t depth = 2;
  for (const uint64_t n : {0, 1, 3, 4, 5, 1000, 1 << 14, (1 << 20) + 1, 16 << 20}) {
    if (quick && n > 1000) break;
    say(("shapes of " + std::to_string(n) + " elements").c_str());
    for (const uint32_t blocks : {1u, 8u, 32u}) {
      RendezvousOptions options = Rank::rings(blocks, depth, n > 1 << 20 ? 256 << 10 : 4 << 10);
      for (const RingAt at : {RingAt::receiver, RingAt::sender}) {
        options.ring_at = at;
        if (at == RingAt::sender) options.packet_bytes = 0;  // short collectives through rings, too
        const auto transport = direct_rendezvous(world, options);
        test_shape(rank, *transport, n, {blocks, blocks == 1 ? 32u : 512u}, options.packet_bytes, quick);
      }
      depth = depth == 8 ? 2 : depth + 1;  // every depth is used with some of the sizes
    }
  }
  world.barrier();
  return failures == 0;
}

}  // namespace

int main(int argc, char** argv) { return test::rank_program(argc, argv, "cuda_tiles", run_rank); }
