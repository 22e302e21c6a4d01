#pragma once

#include <cstdint>
#include <vector>

#include "chorale/window.hpp"
#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/device/host_words.hpp"
#include "executor/cuda/memory/peer_memory.hpp"
#include "executor/cuda/memory/pool.hpp"
#include "executor/schedule/backend.hpp"

namespace chorale::schedule_run {

/// Places tensors in GPU memory, which the caller may provide. Flags are in memory that the ranks' processes
/// share and all GPUs see, so that the watcher can set them when the world has stopped. A CUDA stream could
/// not set them reliably, because it may share a hardware queue with a stream that waits.
class CudaMemory {
 public:
  /// Allocates and maps the memory. Collective. The current device must be the rank's.
  CudaMemory(const Bound& bound, cuda::Imports& imports, cuda::Pool& pool);

  /// Returns the device's addresses of tensors and flags.
  const Memory& places() const { return places_; }
  /// Returns the host's address of a flag.
  uint32_t* on_host(uint32_t flag) const { return host_flags_[flag]; }

 private:
  void place_flags(const Bound& bound);
  void place_tensors(const Bound& bound, cuda::Imports& imports, cuda::Pool& pool);

  Window window_;
  std::vector<cuda::HostMapping> mappings_;  // by rank
  std::vector<uint32_t*> host_flags_;        // by flag
  std::vector<cuda::Pool::Block> shared_;
  std::vector<cuda::DeviceMemory> own_;
  std::vector<cuda::PeerMemory> peers_;
  Memory places_;
};

}  // namespace chorale::schedule_run
