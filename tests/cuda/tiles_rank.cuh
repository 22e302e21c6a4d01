/// \file
/// Describes a rank of cuda_tiles, and what its tests share.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/cuda/tiles_values.cuh"

namespace tiles_test {

class Rank {
 public:
  explicit Rank(World& world)
      : world(world),
        ranks(world.ranks()),
        self(world.rank()),
        right((self + 1) % ranks),
        left((self + ranks - 1) % ranks) {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    room_of_findings();
  }
  ~Rank() { cudaStreamDestroy(stream); }

  /// Waits until all ranks have allocated and freed their memory for a launch. CUDA may wait for the GPU's
  /// kernels when it allocates or frees, and if ranks share the GPU these kernels wait for this rank.
  void ready() const { world.barrier(); }

  /// Waits until all launches have ended on all ranks, so that no link is destroyed while a peer writes
  /// there.
  void ended() const {
    check(cudaStreamSynchronize(stream));
    world.check();
    world.barrier();
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

/// Captures the work that enqueue() launches, and replays it `replays` times. before(number) enqueues the
/// data of a replay, after(number) checks its result.
template <class Enqueue, class Before, class After>
void replay(const Rank& rank, uint64_t replays, const Enqueue& enqueue, const Before& before,
            const After& after) {
  cudaGraph_t graph;
  cudaGraphExec_t replayed;
  check(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal));
  enqueue();
  check(cudaStreamEndCapture(rank.stream, &graph));
  check(cudaGraphInstantiate(&replayed, graph, 0));
  rank.ready();
  for (uint64_t number = 0; number < replays && failures == 0; ++number) {
    before(number);
    check(cudaGraphLaunch(replayed, rank.stream));
    rank.ended();
    after(number);
  }
  check(cudaGraphExecDestroy(replayed));
  check(cudaGraphDestroy(graph));
  rank.ready();
}

inline Leg leg_of(const Buffer& in, const Buffer& out, uint64_t n) {
  Leg leg;
  leg.in = in.data();
  leg.out = out.data();
  leg.bytes = n * 4;
  leg.elem = 4;
  return leg;
}

/// Serves as the base of kernels in which every rank sends to the next.
struct ToTheRight {
  EndpointTable table;
  Leg message;
  __device__ int32_t right() const { return (table.self + 1) % table.ranks; }
  __device__ int32_t left() const { return (table.self + table.ranks - 1) % table.ranks; }
};

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

}  // namespace tiles_test
