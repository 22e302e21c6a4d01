#pragma once
// alone() makes a group of the calling thread, and add_up() sums a value over the threads of a group.

#include <cstdint>
#include <cstring>

#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"

namespace chorale {

/// Returns the calling thread as a group of one. With it the threads of a group divide waits and signals
/// among them. Unlike thread_group(), it keeps the id and the count of the group.
CHORALE_FN Group alone(const Group& group) {
  Group thread = group;
  thread.rank = 0;
  thread.size = 1;
  thread.scope = Scope::thread;
  return thread;
}

#if defined(__CUDACC__)
namespace detail {
CHORALE_FN float add_up_in_warp(float value) {
  // Each step adds the same two numbers in both lanes, so all lanes end with the same bits.
#pragma unroll
  for (int other = int(warp_threads) / 2; other != 0; other /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, other);
  }
  return value;
}
}  // namespace detail

/// Returns the sum of the threads' values. It has the same bits in every thread and run, because the order
/// depends only on the size. CUDA: the group is whole warps, and not a cluster. Synchronises.
CHORALE_FN float add_up(const Group& group, float value) {
  using detail::warp_threads;
  if (group.scope == Scope::thread) return value;
  if (group.scope == Scope::cluster || group.size % warp_threads != 0) {
    refuse("add_up() needs a group of whole warps of one block");
  }
  if (group.size == warp_threads) {
    // Shuffles synchronise but do not order memory; __syncwarp() does.
    __syncwarp();
    value = detail::add_up_in_warp(value);
    __syncwarp();
    return value;
  }
  value = detail::add_up_in_warp(value);
  __shared__ float parts[detail::named_barriers][warp_threads];
  const uint32_t lane = group.rank % warp_threads, warps = group.size / warp_threads;
  group.sync();  // no thread still reads the parts of an earlier call
  if (lane == 0) parts[group.barrier][group.rank / warp_threads] = value;
  group.sync();
  return detail::add_up_in_warp(lane < warps ? parts[group.barrier][lane] : 0.0f);
}
#else
CHORALE_FN float add_up(const Group& group, float value) {
  if (group.size == 1) return value;
  float sum = 0;
  for (uint32_t thread = 0; thread < group.size; ++thread) {
    group.sync();  // all threads have read the result of the thread before
    if (group.rank == thread) std::memcpy(group.host->cell, &value, sizeof value);
    group.sync();
    float next;
    std::memcpy(&next, group.host->cell, sizeof next);
    sum = thread == 0 ? next : sum + next;
  }
  return sum;
}
#endif

}  // namespace chorale
