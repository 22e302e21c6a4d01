/// \file
/// This makes transports and windows in the memory of GPUs. A build without CUDA throws Unsupported.
#pragma once

#include <cstdint>
#include <memory>

#include "chorale/transport.hpp"
#include "geometry.hpp"

namespace chorale::transport {

/// Collective: makes links over mapped memory.
/// \throws RunError as PeerMemory::exchange()
std::unique_ptr<Transport> direct_in_device_memory(World& world, const Geometry& geometry);

/// Collective: makes links over copy engines.
/// \throws RunError as PeerMemory::exchange()
std::unique_ptr<Transport> port_in_device_memory(World& world, const Geometry& geometry);

/// Makes a copy that kernels read.
std::shared_ptr<const void> device_copy(const void* data, uint64_t bytes);

/// Holds zeroed memory of every rank, mapped in all. World::reset() waits until what runs on its GPU has
/// ended.
class DeviceWindow {
 public:
  virtual ~DeviceWindow() = default;
  virtual char* at(int rank) const = 0;  ///< null where bytes(rank) is 0
  virtual uint64_t bytes(int rank) const = 0;
  virtual int device() const = 0;  ///< the GPU of this rank

  /// Waits until what runs on this rank's GPU has ended.
  virtual void finish() const = 0;
  /// Zeros part of this rank's memory.
  virtual void clear(uint64_t at, uint64_t bytes) const = 0;
};

/// Collective: makes a window. `bytes` may differ by rank.
/// \throws RunError as PeerMemory::exchange()
std::unique_ptr<DeviceWindow> device_window(World& world, uint64_t bytes);

}  // namespace chorale::transport
