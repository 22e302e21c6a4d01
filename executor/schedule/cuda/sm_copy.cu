// On GPUs an SM copy is a kernel on the schedule's CUDA stream.

#include "chorale/resident.cuh"
#include "executor/cuda/device/enqueue.cuh"
#include "executor/schedule/sm_copy.hpp"
#include "kernels.hpp"

namespace chorale::schedule_run {
namespace {

constexpr unsigned threads = 512;

__global__ void __launch_bounds__(threads) run_sm_copy(SmCopy work, SmCopyLaunch launch) {
  sm_copy(block_group(), work, launch);
}

}  // namespace

cudaError_t enqueue_sm_copy(const SmCopy& work, const SmCopyLaunch& launch, cudaStream_t stream) {
  return cuda::enqueue(run_sm_copy, work.blocks ? work.blocks : 1, threads, stream, work, launch);
}

cudaError_t resident_sm_copy_blocks(uint64_t& blocks) {
  int device = 0;
  detail::Resident found;
  cudaError_t result = cudaGetDevice(&device);
  if (result == cudaSuccess)
    result = detail::find_resident(reinterpret_cast<const void*>(run_sm_copy), threads, 0, device, found);
  blocks = found.blocks();
  return result;
}

}  // namespace chorale::schedule_run
