#include "bench/fused/harness.hpp"

#include <algorithm>
#include <span>

namespace chorale::fused_bench {
namespace {

constexpr int calls = 50;  ///< the number of calls in a graph

}  // namespace

RendezvousOptions links() {
  RendezvousOptions options;
  options.max_channels = 256;
  options.depth = 4;
  options.per_peer_bytes = (64ull << 10) * options.depth * options.max_channels;
  options.packet_bytes = 64 << 10;
  options.space = Space::device;
  return options;
}

std::vector<LaunchConfig> shapes_for(uint64_t bytes) {
  std::vector<LaunchConfig> all;
  for (const uint32_t blocks : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 256u}) {
    const uint64_t share = bytes / blocks;
    if ((blocks > 1 && share < 1024) || share > 1 << 20) continue;
    for (const uint32_t threads : {128u, 256u, 512u}) {
      if (threads > 128 && share <= 2048) continue;
      if (threads < 512 && share > 64 << 10) continue;
      if (threads * blocks <= 65536) all.push_back({blocks, threads});
    }
  }
  return all;
}

OneSidedWindow shared_memory(World& world, uint64_t bytes) {
  return OneSidedWindow::create(world, bytes, 0, 2 * most_window_blocks, Space::device);
}

Bench::Bench(World& world) : world_(world) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  check(cudaEventCreate(&begin_), "an event");
  check(cudaEventCreate(&end_), "an event");
  check(cudaMalloc(reinterpret_cast<void**>(&counts_), 2 * sizeof(uint64_t)), "two counts");
}

Bench::~Bench() {
  cudaFree(counts_);
  cudaEventDestroy(end_);
  cudaEventDestroy(begin_);
  cudaStreamDestroy(stream_);
}

void Bench::finish() {
  check(cudaStreamSynchronize(stream_), "a kernel");
  world_.check();  // throws if a kernel's wait has ended early
}

void Bench::verify(Workload& workload, const Candidate& candidate) {
  workload.reset(stream_);
  finish();
  world_.barrier();
  candidate.enqueue(stream_);
  check(cudaMemsetAsync(counts_, 0, 2 * sizeof(uint64_t), stream_), "two counts");
  workload.count_wrong(stream_, counts_);
  workload.digest(stream_, counts_ + 1);
  uint64_t counts[2] = {};
  check(cudaMemcpyAsync(counts, counts_, sizeof counts, cudaMemcpyDeviceToHost, stream_), "two counts");
  finish();
  double wrong = 0;
  for (const double theirs : bench::from_all(world_, double(counts[0]))) wrong += theirs;
  if (wrong != 0) {
    throw Wrong(workload.name() + ", " + candidate.name + ", " + workload.shape() + ": " +
                std::to_string(uint64_t(wrong)) + " elements are wrong");
  }
  const auto digests = world_.allgather(std::as_bytes(std::span(counts + 1, 1)));
  for (const auto& theirs : digests) {
    if (theirs != digests[0]) {
      throw Wrong(workload.name() + ", " + candidate.name + ": not the same bits on all ranks");
    }
  }
}

double Bench::time(Workload& workload, const Candidate& candidate) {
  verify(workload, candidate);
  const bench::Graph graph(stream_, calls, candidate.enqueue);
  graph.launch();
  finish();
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    world_.barrier();
    check(cudaEventRecord(begin_, stream_), "an event");
    for (int turn = 0; turn < 2; ++turn) graph.launch();
    check(cudaEventRecord(end_, stream_), "an event");
    finish();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "the time between events");
    const auto all = bench::from_all(world_, double(milliseconds) * 1000 / (2 * calls));
    best = std::min(best, *std::max_element(all.begin(), all.end()));
  }
  verify(workload, candidate);
  return best;
}

}  // namespace chorale::fused_bench
