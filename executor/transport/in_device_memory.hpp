/// \file
/// These functions make copies and windows in GPU memory. In a build without CUDA they throw Unsupported.
#pragma once

#include <cstdint>
#include <memory>

#include "chorale/world.hpp"

namespace chorale::transport {

/// Makes a copy of `data` in GPU memory for kernels.
std::shared_ptr<const void> device_copy(const void* data, uint64_t bytes);

/// Holds zeroed GPU memory of every rank, which all ranks map. World::reset() waits until all work on this
/// rank's GPU has ended.
class DeviceWindow {
 public:
  virtual ~DeviceWindow() = default;
  virtual char* at(int rank) const = 0;  ///< null if bytes(rank) is 0
  virtual uint64_t bytes(int rank) const = 0;
  virtual int device() const = 0;  ///< the GPU of this rank
  /// Returns whether LL128 packets work between all ranks; the same on all ranks.
  virtual bool whole_lines() const = 0;

  /// Waits until all work on this rank's GPU has ended.
  virtual void finish() const = 0;
  /// Zeros part of this rank's memory.
  virtual void clear(uint64_t at, uint64_t bytes) const = 0;
};

/// Makes a window; collective. `bytes` may differ by rank.
/// \throws RunError as PeerMemory::exchange()
std::unique_ptr<DeviceWindow> device_window(World& world, uint64_t bytes);

}  // namespace chorale::transport
