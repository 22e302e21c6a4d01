// This kernel moves the messages of exchanges on GPUs.

#include "chorale/next_launch.hpp"
#include "executor/cuda/device/enqueue.cuh"
#include "kernel.hpp"

namespace chorale::exchange {
namespace {

/// Moves the messages of one launch. __grid_constant__ leaves the messages in parameter memory. Without it,
/// every thread would copy the parameter, because it indexes it.
__global__ void __launch_bounds__(kernel_threads, 2) run_exchange(const __grid_constant__ KernelWork work) {
  chorale::detail::wait_for_turn(work.next_beside);
  run_messages(block_group(), work.links, work.messages, work.n, work.deadline);
}

}  // namespace

cudaError_t enqueue_exchange(const KernelWork& work, uint32_t blocks, cudaStream_t stream) {
  return cuda::enqueue_early(run_exchange, blocks, kernel_threads, stream, work);
}

cudaError_t resident_exchange_blocks(chorale::detail::Resident& found) {
  int device = 0;
  const cudaError_t result = cudaGetDevice(&device);
  if (result != cudaSuccess) return result;
  return chorale::detail::find_resident(reinterpret_cast<const void*>(run_exchange), kernel_threads, 0,
                                        device, found);
}

}  // namespace chorale::exchange
