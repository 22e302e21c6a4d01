/// \file
/// The parts that benchmarks on GPUs share: calls in a CUDA graph, and figures of all ranks.
#pragma once

#include <cuda_runtime_api.h>

#include <chorale/world.hpp>
#include <functional>
#include <vector>

namespace chorale::bench {

/// Throws unless a call of CUDA succeeded.
/// \throws RunError that says `what` failed
void check(cudaError_t result, const char* what);

/// Returns every rank's `mine`, by rank. Collective.
std::vector<double> from_all(World& world, double mine);

/// A graph of `calls` calls of enqueue(stream). The capture is of this thread only, because threads of the
/// library call CUDA meanwhile.
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
