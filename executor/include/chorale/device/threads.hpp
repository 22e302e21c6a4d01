#pragma once
// alone() makes a group of the calling thread. add_up() and largest_of() combine a value over the threads of
// a group.

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

namespace detail {
/// Returns the larger of two values, of which none is a NaN.
struct Larger {
  CHORALE_FN float operator()(float a, float b) const { return a < b ? b : a; }
};
}  // namespace detail

#if defined(__CUDACC__)
namespace detail {
/// Combines the values of each run of `lanes` lanes, a power of two. The lanes of the warp call it together.
/// Each step combines the same two values in both lanes, so all lanes of a run end with the same bits.
template <class Combine>
CHORALE_FN float over_lanes(float value, uint32_t lanes, const Combine& combine) {
  for (uint32_t other = lanes / 2; other != 0; other /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, int(other)));
  }
  return value;
}

/// Has a value of each warp of a block or multiwarp group.
struct OfWarps {
  float of[named_barriers][warp_threads];
};
CHORALE_FN OfWarps& of_warps() {
  __shared__ OfWarps room;
  return room;
}

/// Combines the values of a group's threads. Combining a value with `none` gives the value.
template <class Combine>
CHORALE_FN float over_threads(const Group& group, float value, float none, const Combine& combine) {
  if (group.scope == Scope::thread) return value;
  if (group.scope == Scope::cluster || group.size % warp_threads != 0) {
    refuse("a value is combined over a group that is not whole warps of one block");
  }
  if (group.size == warp_threads) {
    // Shuffles synchronise but do not order memory; __syncwarp() does.
    __syncwarp();
    value = over_lanes(value, warp_threads, combine);
    __syncwarp();
    return value;
  }
  value = over_lanes(value, warp_threads, combine);
  float* const parts = of_warps().of[group.barrier];
  const uint32_t lane = group.rank % warp_threads, warps = group.size / warp_threads;
  group.sync();  // no thread still reads the parts of an earlier call
  if (lane == 0) parts[group.rank / warp_threads] = value;
  group.sync();
  return over_lanes(lane < warps ? parts[lane] : none, warp_threads, combine);
}
}  // namespace detail
#else
namespace detail {
template <class Combine>
CHORALE_FN float over_threads(const Group& group, float value, float, const Combine& combine) {
  if (group.size == 1) return value;
  float all = 0;
  for (uint32_t thread = 0; thread < group.size; ++thread) {
    group.sync();  // all threads have read the value of the thread before
    if (group.rank == thread) std::memcpy(group.host->cell, &value, sizeof value);
    group.sync();
    float next;
    std::memcpy(&next, group.host->cell, sizeof next);
    all = thread == 0 ? next : combine(all, next);
  }
  return all;
}
}  // namespace detail
#endif

/// Returns the sum of the threads' values. It has the same bits in every thread and run, because the order
/// depends only on the size. CUDA: the group is whole warps, and not a cluster. Synchronises.
CHORALE_FN float add_up(const Group& group, float value) {
  return detail::over_threads(group, value, 0.0f, [](float a, float b) { return a + b; });
}

/// Returns the largest of the threads' values, of which none is negative or a NaN. Synchronises. CUDA: as
/// add_up().
CHORALE_FN float largest_of(const Group& group, float value) {
  return detail::over_threads(group, value, 0.0f, detail::Larger{});
}

}  // namespace chorale
