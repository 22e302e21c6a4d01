/// \file
/// These functions make the transports of chorale/transports.def. Each folder of a transport defines its own:
/// host.cpp for memory of the host, and device.cpp, which is only in builds with CUDA, for that of GPUs.
#pragma once

#include <memory>
#include <string>

#include "chorale/transport.hpp"
#include "geometry.hpp"

namespace chorale::transport {

/// NAME_refuses() returns why the transport does not take these options; "" if it does. They are the same on
/// all ranks.
///
/// NAME_in_host_memory() and NAME_in_device_memory() make the transport; collective. In a build without CUDA
/// the latter throws Unsupported.
/// \throws RunError as Window::create(), on GPUs as PeerMemory::exchange()
#define CHORALE_TRANSPORT(name) \
  std::string name##_refuses(const RendezvousOptions& options); \
  std::unique_ptr<Transport> name##_in_host_memory(World& world, const Geometry& geometry); \
  std::unique_ptr<Transport> name##_in_device_memory(World& world, const Geometry& geometry);
#include "chorale/transports.def"

}  // namespace chorale::transport
