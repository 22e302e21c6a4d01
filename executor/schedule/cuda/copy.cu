// In this kernel thread blocks do a copy on the schedule's CUDA stream.

#include "chorale/device/context.hpp"
#include "executor/cuda/device/enqueue.cuh"
#include "executor/schedule/copy_part.hpp"
#include "kernels.hpp"

namespace chorale::schedule_run {
namespace {

constexpr unsigned threads = 512;

__global__ void __launch_bounds__(threads) run_copy(Copy copy) {
  const Group group = block_group();
  Leg message;
  message.bytes = copy.bytes * copy.rows;
  const Leg share = share_of(message, group.id, group.count);
  copy_part(group, copy, share.begin, share.begin + share.bytes);
}

}  // namespace

cudaError_t enqueue_copy(const Copy& copy, uint32_t blocks, cudaStream_t stream) {
  return cuda::enqueue(run_copy, blocks, threads, stream, copy);
}

}  // namespace chorale::schedule_run
