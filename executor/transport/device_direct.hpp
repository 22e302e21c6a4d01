/// \file
/// direct_rendezvous() in the memory of GPUs.
#pragma once

#include <memory>

#include "chorale/transport.hpp"
#include "geometry.hpp"

namespace chorale::transport {

/// Collective. \throws Unsupported in a build without CUDA; RunError as PeerMemory::exchange()
std::unique_ptr<Transport> direct_in_device_memory(World& world, const Geometry& geometry);

}  // namespace chorale::transport
