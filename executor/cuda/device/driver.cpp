#include "driver.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "chorale/error.hpp"
#include "error.hpp"

namespace chorale::cuda {
namespace {

void* find(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t result =
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
#else
  // This call returns the newest form that the toolkit knows. The toolkit's names mean the same form.
  (void)version;
  const cudaError_t result = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  check(result, fmt::format("finding {} in the CUDA driver", name));
  if (found == cudaDriverEntryPointSuccess && function) return function;
  throw RunError(RunError::Reason::other,
                 fmt::format("the CUDA driver lacks {} of CUDA {}.{}: update the driver", name,
                             version / 1000, version % 1000 / 10));
}

#define CHORALE_CUDA_LOAD(name, version) \
  driver.name = reinterpret_cast<decltype(driver.name)>(find(#name, version));

Driver load() {
  Driver driver;
  CHORALE_CUDA_DRIVER(CHORALE_CUDA_LOAD)
  return driver;
}

MulticastDriver load_multicast() {
  MulticastDriver driver;
  CHORALE_CUDA_MULTICAST(CHORALE_CUDA_LOAD)
  return driver;
}

#undef CHORALE_CUDA_LOAD

}  // namespace

const Driver& driver() {
  static const Driver loaded = load();  // tried again if it threw
  return loaded;
}

const MulticastDriver& multicast_driver() {
  static const MulticastDriver loaded = load_multicast();  // tried again if it threw
  return loaded;
}

}  // namespace chorale::cuda
