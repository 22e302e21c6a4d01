/// \file
/// Where a schedule's tensors and flags are on GPUs.
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

/// Tensors are in the GPUs' memory, that of the caller where he has given some. Flags are in memory that the
/// ranks' processes share and all GPUs see: so a monitor can set them when the world has stopped, which no
/// stream could be trusted with, as it may share a hardware queue with one that waits.
class CudaMemory {
 public:
  /// Collective; the current device is the rank's.
  CudaMemory(const Bound& bound, cuda::Imports& imports, cuda::Pool& pool);

  /// Flags as the device sees them.
  const Memory& places() const { return places_; }
  /// The flag of an action, as the host sees it.
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
