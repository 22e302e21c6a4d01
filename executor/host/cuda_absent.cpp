// Host schedules run on the CPU only, so far.

#include "backend.hpp"

namespace chorale::hostrun {

std::unique_ptr<Lanes> make_cuda_lanes(Bound) {
  throw UsageError("host schedules do not run on CUDA yet: use backend cpu");
}

HostFunctions cuda_functions() { return {}; }

}  // namespace chorale::hostrun
