/// \file
/// A launch may let the next launch of its stream become resident on the GPU before it has ended. This header
/// decides when. It is C++17.
#pragma once

#include <cstdint>

namespace chorale::detail {

/// Returns whether the next launch may become resident while this one runs. Both launches together must leave
/// half of the GPU to other streams, because a peer may wait for a kernel of another stream before it makes
/// this launch (docs/decisions/0010-the-next-launch-stands-beside.md).
/// \param blocks    the thread blocks of one launch
/// \param resident  how many of them the GPU holds at a time
constexpr bool next_may_stand_beside(uint64_t blocks, uint64_t resident) { return 4 * blocks <= resident; }

#if defined(__CUDACC__)
/// Waits until all work before this launch in the stream has ended and its results are visible. The launch
/// may start before that.
/// \param next_beside  the next launch may start and come to its wait while this one runs
__device__ inline void wait_for_turn(bool next_beside) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (next_beside) asm volatile("griddepcontrol.launch_dependents;");
#else
  (void)next_beside;
#endif
}
#endif

}  // namespace chorale::detail
