#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>

namespace chorale::cuda {

/// Counts the graphs into which launches were captured, and all copies and executable graphs made from them,
/// until CUDA has destroyed the last one.
class GraphHolds {
 public:
  /// Adds the graph that `stream` captures.
  /// \throws RunError
  void add(cudaStream_t stream);

  bool any() const { return graphs_->load(std::memory_order_acquire) != 0; }

 private:
  // Graphs may outlive this object, and release it in a CUDA thread.
  std::shared_ptr<std::atomic<int>> graphs_ = std::make_shared<std::atomic<int>>(0);
  unsigned long long last_ = 0;  ///< the last capture that was added
};

}  // namespace chorale::cuda
