#include "device.hpp"
#include "outcome.hpp"

namespace chorale::nccl {
namespace {

[[noreturn]] void refuse() {
  throw CallError(ncclUnhandledCudaError,
                  "this library was built without CUDA. Build Chorale where nvcc is on the PATH, or set "
                  "CHORALE_BACKEND=cpu for buffers in host memory");
}

}  // namespace

bool has_gpu() { return false; }
int current_gpu_number() { return 0; }
std::unique_ptr<Device> current_gpu() { refuse(); }
std::unique_ptr<Device> gpu_of_number(int) { refuse(); }
void* allocate_for_program(size_t) { refuse(); }
void free_of_program(void*) { refuse(); }

}  // namespace chorale::nccl
