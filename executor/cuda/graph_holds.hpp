/// \file
/// Whether CUDA graphs hold launches of a binding.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>

namespace chorale::cuda {

/// Counts the graphs that launches were captured into, and everything that was made of them, until CUDA has
/// destroyed the last of it.
class GraphHolds {
 public:
  /// `stream` captures a graph. \throws RunError
  void add(cudaStream_t stream);

  bool any() const { return graphs_->load(std::memory_order_acquire) != 0; }

 private:
  // Graphs may outlive this, and let go in a thread of CUDA's.
  std::shared_ptr<std::atomic<int>> graphs_ = std::make_shared<std::atomic<int>>(0);
  unsigned long long last_ = 0;  ///< the capture that was added last
};

}  // namespace chorale::cuda
