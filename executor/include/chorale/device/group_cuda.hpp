#pragma once
// This file defines groups on CUDA. group.hpp includes it. Blocks are one-dimensional.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "chorale/device/group_interface.hpp"

namespace chorale {

namespace detail {
constexpr uint32_t warp_threads = 32;
constexpr uint32_t named_barriers = 16;

// We do not use the .aligned forms, because the leader of a group may come from a wait of its own, diverged
// from the rest of its warp.

CHORALE_FN void named_sync(uint32_t barrier, uint32_t threads) {
  asm volatile("barrier.cta.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

CHORALE_FN bool named_all(uint32_t barrier, uint32_t threads, bool yes) {
  uint32_t result;
  asm volatile(
      "{\n"
      "  .reg .pred mine, every;\n"
      "  setp.ne.u32 mine, %3, 0;\n"
      "  barrier.cta.red.and.pred every, %1, %2, mine;\n"
      "  selp.u32 %0, 1, 0, every;\n"
      "}"
      : "=r"(result)
      : "r"(barrier), "r"(threads), "r"(uint32_t(yes))
      : "memory");
  return result != 0;
}

CHORALE_FN void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
}

/// Returns the address, in block 0 of the cluster, of the shared variable at `here`.
CHORALE_FN uint32_t in_first_block(const void* here) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;"
               : "=r"(there)
               : "r"(uint32_t(__cvta_generic_to_shared(here))));
  return there;
}

/// These functions do what broadcast() and all() do, through the shared memory of the cluster's first block.
/// They are separate functions, so that kernels without clusters do not allocate that shared memory.
template <class T>
CHORALE_FN T cluster_broadcast(T value, bool leader) {
  __shared__ uint64_t cell[2];
  cluster_sync();  // no thread still reads the cell for an earlier call
  if (leader) std::memcpy(cell, &value, sizeof(T));
  cluster_sync();
  const uint32_t there = in_first_block(cell);
  uint64_t words[2];
  asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(words[0]) : "r"(there) : "memory");
  asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(words[1]) : "r"(there + 8) : "memory");
  std::memcpy(&value, words, sizeof(T));
  cluster_sync();  // the first block may end now
  return value;
}
CHORALE_FN bool cluster_all(bool yes, bool leader) {
  __shared__ uint32_t cell;
  cluster_sync();
  if (leader) cell = 1;
  cluster_sync();
  const uint32_t there = in_first_block(&cell);
  if (!yes) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(0u) : "memory");
  cluster_sync();
  uint32_t result;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(result) : "r"(there) : "memory");
  cluster_sync();
  return result != 0;
}
}  // namespace detail

CHORALE_FN void Group::sync() const {
  switch (scope) {
    case Scope::thread:
      break;
    case Scope::warp:
      __syncwarp();
      break;
    case Scope::multiwarp:
      detail::named_sync(barrier, size);
      break;
    case Scope::block:
      __syncthreads();
      break;
    case Scope::cluster:
      detail::cluster_sync();
      break;
  }
}

CHORALE_FN void Group::pause(uint32_t spin) const {
  // Most waits are short, and a sleep takes longer than a poll. So only a thread that has waited long gives
  // way to others.
  if (spin > 4096) __nanosleep(100);
}

template <class Ready>
CHORALE_FN void Group::park(const Ready&, uint32_t spin) const {
  pause(spin);
}

CHORALE_FN void Group::step() const {}

CHORALE_FN Stop Group::stopped() const { return Stop::none; }

template <class T>
CHORALE_FN T Group::broadcast(T value) const {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
  if (scope == Scope::thread) return value;
  if (scope == Scope::warp) {
    // Shuffles and votes synchronise but do not order memory; __syncwarp() does.
    __syncwarp();
    uint32_t words[(sizeof(T) + 3) / 4] = {};
    std::memcpy(words, &value, sizeof(T));
#pragma unroll
    for (uint32_t word = 0; word < sizeof words / 4; ++word)
      words[word] = __shfl_sync(0xffffffffu, words[word], 0);
    std::memcpy(&value, words, sizeof(T));
    __syncwarp();
    return value;
  }
  if (scope == Scope::cluster) return detail::cluster_broadcast(value, leader());
  __shared__ uint64_t cells[detail::named_barriers][2];  // one per group that can be at a barrier at a time
  sync();                                                // no thread still reads the cell for an earlier call
  if (leader()) std::memcpy(cells[barrier], &value, sizeof(T));
  sync();
  std::memcpy(&value, cells[barrier], sizeof(T));
  return value;
}

CHORALE_FN bool Group::all(bool yes) const {
  switch (scope) {
    case Scope::thread:
      return yes;
    case Scope::warp:
      __syncwarp();
      yes = __all_sync(0xffffffffu, yes);
      __syncwarp();
      return yes;
    case Scope::multiwarp:
      return detail::named_all(barrier, size, yes);
    case Scope::block:
      return __syncthreads_and(yes);
    case Scope::cluster:
      return detail::cluster_all(yes, leader());
  }
  return yes;
}

CHORALE_FN Group Group::warps() const {
  if (size % detail::warp_threads != 0) refuse("warps() needs a group of whole warps");
  const uint32_t warps = size / detail::warp_threads;
  Group warp = *this;
  warp.scope = Scope::warp;
  warp.rank = rank % detail::warp_threads;
  warp.size = detail::warp_threads;
  warp.id = id * warps + rank / detail::warp_threads;
  warp.count = count * warps;
  return warp;
}

/// Returns the calling thread's block as one of the grid's blocks.
CHORALE_FN Group block_group() {
  Group group;
  group.rank = threadIdx.x;
  group.size = blockDim.x;
  group.id = group.block = blockIdx.x;
  group.count = gridDim.x;
  group.scope = Scope::block;
  return group;
}

CHORALE_FN Group cluster_group(const Group& block) {
  detail::check_cluster(block);
  uint32_t place, blocks, cluster, clusters;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(place));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(cluster));
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters));
  Group group = block;
  group.rank = place * block.size + block.rank;
  group.size = blocks * block.size;
  group.id = cluster;
  group.count = clusters;
  group.scope = Scope::cluster;
  return group;
}

CHORALE_FN Group multiwarp_group(const Group& block, uint32_t threads) {
  if (block.scope != Scope::block || threads == 0 || threads % detail::warp_threads != 0 ||
      block.size % threads != 0 || block.size / threads >= detail::named_barriers) {
    refuse("the size of a group does not divide its block");
  }
  const uint32_t here = block.rank / threads, groups = block.size / threads;
  Group group = block;
  group.rank = block.rank % threads;
  group.size = threads;
  group.id = block.id * groups + here;
  group.count = block.count * groups;
  group.scope = Scope::multiwarp;
  group.barrier = here + 1;
  return group;
}

// These return the groups of the whole grid, for kernels that launch() does not run.

CHORALE_FN Group thread_group() { return thread_group(block_group()); }
CHORALE_FN Group warp_group() { return warp_group(block_group()); }
CHORALE_FN Group multiwarp_group(uint32_t threads) { return multiwarp_group(block_group(), threads); }
CHORALE_FN Group cluster_group() { return cluster_group(block_group()); }

}  // namespace chorale
