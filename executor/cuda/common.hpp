/// \file
/// Common holds the parts of an executor that serve all its bindings.
#pragma once

#include <cstdint>
#include <functional>

#include "chorale/world.hpp"
#include "executor/cuda/proxy/proxy.hpp"

namespace chorale::cuda {

class Imports;
class Monitor;
class Pool;
class Registry;

struct Common {
  World* world = nullptr;
  int device = 0;
  Imports* imports = nullptr;
  Pool* pool = nullptr;
  Monitor* monitor = nullptr;
  AbortWord* abort = nullptr;  ///< the device's address of it
  uint64_t timeout_ns = 0;
  unsigned trace_launches = 0;
  std::function<Proxy&()> proxy;  ///< makes the proxy if there is none yet
  /// Makes the registry if there is none yet. Collective until then.
  std::function<Registry&()> registry;
};

}  // namespace chorale::cuda
