// In this kernel thread blocks copy a strided region on the schedule's CUDA stream.

#include "chorale/device/context.hpp"
#include "executor/cuda/device/enqueue.cuh"
#include "executor/schedule/copy_regions.hpp"
#include "kernels.hpp"

namespace chorale::schedule_run {
namespace {

constexpr unsigned threads = 512;

__global__ void __launch_bounds__(threads) run_copy(StridedRegion region) {
  const Group group = block_group();
  Leg message;
  message.bytes = region.bytes * region.rows;
  const Leg share = share_of(message, group.id, group.count);
  copy_regions(group, &region, 1, share.begin, share.begin + share.bytes, 0, 0);
}

}  // namespace

cudaError_t enqueue_copy(const StridedRegion& region, uint32_t blocks, cudaStream_t stream) {
  return cuda::enqueue(run_copy, blocks, threads, stream, region);
}

}  // namespace chorale::schedule_run
