/// \file
/// Declares what benchmarks on GPUs share: calls in a CUDA graph, and values from all ranks.
#pragma once

#include <cuda_runtime_api.h>

#include <chorale/world.hpp>
#include <functional>
#include <vector>

namespace chorale::bench {

/// Throws if a call of CUDA failed.
/// \throws RunError that says that `what` failed
void check(cudaError_t result, const char* what);

/// Returns every rank's `mine`, by rank. Collective.
std::vector<double> from_all(World& world, double mine);

/// Holds a graph of `calls` calls of enqueue(stream). The capture covers only this thread, because threads of
/// the library call CUDA meanwhile.
class Graph {
 public:
  Graph(cudaStream_t stream, int calls, const std::function<void(cudaStream_t)>& enqueue);
  ~Graph();
  Graph(const Graph&) = delete;

  void launch() const;

 private:
  cudaGraphExec_t made_ = nullptr;
  cudaStream_t stream_;
};

}  // namespace chorale::bench
