// In this kernel thread blocks copy a strided region on the schedule's CUDA stream.

#include "../../cuda/enqueue.cuh"
#include "../copy_strips.hpp"
#include "chorale/device/context.hpp"
#include "kernels.hpp"

namespace chorale::hostrun {
namespace {

constexpr unsigned threads = 512;

__global__ void __launch_bounds__(threads) run_copy(Strip strip) {
  const Group group = block_group();
  Leg message;
  message.bytes = strip.bytes * strip.rows;
  const Leg share = share_of(message, group.id, group.count);
  copy_strips(group, &strip, 1, share.begin, share.begin + share.bytes, 0, 0);
}

}  // namespace

cudaError_t enqueue_copy(const Strip& strip, uint32_t blocks, cudaStream_t stream) {
  return cuda::enqueue(run_copy, blocks, threads, stream, strip);
}

}  // namespace chorale::hostrun
