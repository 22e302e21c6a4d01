// Carries on GPUs: a kernel each, on the lane's stream.

#include "../../cuda/enqueue.cuh"
#include "../carry.hpp"
#include "kernels.hpp"

namespace chorale::hostrun {
namespace {

constexpr unsigned threads = 512;

__global__ void __launch_bounds__(threads) run_carry(Carry work, CarryLaunch launch) {
  carry(block_group(), work, launch);
}

}  // namespace

cudaError_t enqueue_carry(const Carry& work, const CarryLaunch& launch, cudaStream_t stream) {
  return cuda::enqueue(run_carry, work.blocks ? work.blocks : 1, threads, stream, work, launch);
}

cudaError_t resident_carry_blocks(uint64_t& blocks) {
  int device = 0, processors = 0, each = 0;
  cudaError_t result = cudaGetDevice(&device);
  if (result == cudaSuccess)
    result = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (result == cudaSuccess)
    result = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, run_carry, int(threads), 0);
  blocks = uint64_t(each) * uint64_t(processors);
  return result;
}

}  // namespace chorale::hostrun
