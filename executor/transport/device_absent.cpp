#include "device_direct.hpp"

namespace chorale::transport {

std::unique_ptr<Transport> direct_in_device_memory(World&, const Geometry&) {
  throw Unsupported("direct_rendezvous in device memory: this build has no CUDA backend");
}

}  // namespace chorale::transport
