// This file replaces executor/schedule/cuda in a build without CUDA.

#include "backend.hpp"
#include "resources.hpp"

namespace chorale::schedule_run {

std::unique_ptr<Streams> make_cuda_streams(Bound) {
  throw UsageError("this library was built without CUDA: build it with CHORALE_CUDA=ON, or use backend cpu");
}

Resources cuda_resources() { return {"no GPU", {}, {}}; }
HostFunctions cuda_functions(uint32_t) { return {}; }
std::string cuda_misfit(const HostCall&) { return ""; }

}  // namespace chorale::schedule_run
