/// \file
/// The memory of a schedule's tensors and flags on GPUs.
#pragma once

#include <cstdint>
#include <vector>

#include "../../cuda/device_memory.hpp"
#include "../../cuda/host_words.hpp"
#include "../../cuda/peer_memory.hpp"
#include "../../cuda/pool.hpp"
#include "../backend.hpp"
#include "chorale/window.hpp"

namespace chorale::hostrun {

/// Tensors are in the GPUs' memory; the caller may give that memory. Flags are in memory that the ranks'
/// processes share and all GPUs see, so that the watcher can set them when the world has stopped. A stream
/// could not do that reliably, since it may share a hardware queue with a stream that waits.
class CudaMemory {
 public:
  /// Makes and maps the memory. Collective. The current device must be the rank's.
  CudaMemory(const Bound& bound, cuda::Imports& imports, cuda::Pool& pool);

  /// Returns the places of tensors and flags, as the device sees them.
  const Memory& places() const { return places_; }
  /// Returns a flag as the host sees it.
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

}  // namespace chorale::hostrun
