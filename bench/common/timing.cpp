#include "bench/common/timing.hpp"

#include <cstring>
#include <span>
#include <string>

namespace chorale::bench {

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw RunError(RunError::Reason::other, std::string(what) + ": " + cudaGetErrorString(result));
}

std::vector<double> from_all(World& world, double mine) {
  std::vector<double> values;
  for (const auto& theirs : world.allgather(std::as_bytes(std::span(&mine, 1)))) {
    std::memcpy(&values.emplace_back(), theirs.data(), sizeof mine);
  }
  return values;
}

Graph::Graph(cudaStream_t stream, int calls, const std::function<void(cudaStream_t)>& enqueue)
    : stream_(stream) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "the begin of a capture");
  for (int call = 0; call < calls; ++call) enqueue(stream);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "the end of a capture");
  const cudaError_t made = cudaGraphInstantiate(&made_, graph, 0);
  cudaGraphDestroy(graph);
  check(made, "a graph");
  check(cudaGraphUpload(made_, stream), "the upload of a graph");
}

Graph::~Graph() { cudaGraphExecDestroy(made_); }

void Graph::launch() const { check(cudaGraphLaunch(made_, stream_), "the launch of a graph"); }

}  // namespace chorale::bench
