#include "kinds.hpp"

#include <fmt/format.h>

namespace chorale {
namespace {

using namespace transport;

/// Makes a transport.
/// \param caller  the name of the calling function, and other values that must be the same on all ranks
/// \param refusal  why the caller refuses its other values; "" if it does not. All ranks agree before one
/// throws
std::unique_ptr<Transport> make(World& world, TransportKind kind, const RendezvousOptions& options,
                                const std::string& caller, const std::string& refusal = "") {
  const Geometry geometry = agree_on_geometry(world, options, caller);
  if (!refusal.empty()) throw UsageError(refusal);
  switch (kind) {
#define CHORALE_TRANSPORT(name) \
  case TransportKind::name: { \
    const std::string why = name##_refuses(options); \
    if (!why.empty()) throw UsageError(why); \
    return options.space == Space::device ? name##_in_device_memory(world, geometry) \
                                          : name##_in_host_memory(world, geometry); \
  }
#include "chorale/transports.def"
  }
  throw UsageError(fmt::format("there is no transport of kind {}", int(kind)));
}

const char* name_of(TransportKind kind) {
  switch (kind) {
#define CHORALE_TRANSPORT(name) \
  case TransportKind::name: \
    return #name;
#include "chorale/transports.def"
  }
  return "unknown";
}

}  // namespace

std::unique_ptr<Transport> rendezvous(World& world, TransportKind kind, const RendezvousOptions& options) {
  return make(world, kind, options, fmt::format("rendezvous of {}", name_of(kind)));
}

std::unique_ptr<Transport> direct_rendezvous(World& world, const RendezvousOptions& options) {
  return make(world, TransportKind::direct, options, "direct_rendezvous");
}

std::unique_ptr<Transport> port_rendezvous(World& world, const RendezvousOptions& options, ProxyKind proxy) {
  const std::string caller =
      fmt::format("port_rendezvous by {}", proxy == ProxyKind::copy_engine ? "copy_engine" : "shared_memory");
  const bool fits = (proxy == ProxyKind::copy_engine) == (options.space == Space::device);
  return make(
      world, TransportKind::port, options, caller,
      fits ? ""
           : fmt::format(
                 "{} in {} memory: copy engines are for device memory, and other proxies are for host memory",
                 caller, options.space == Space::device ? "device" : "host"));
}

}  // namespace chorale
