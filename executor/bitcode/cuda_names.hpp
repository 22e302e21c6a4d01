// Gives the device library the names that CUDA's headers would give it, so that Clang compiles it without a
// CUDA toolkit. Only the bitcode library includes this file, before all others.
#pragma once

#define __CUDACC__ 1
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

#include <__clang_cuda_builtin_vars.h>
#include <math.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

__device__ inline void* memcpy(void* to, const void* from, size_t bytes) {
  return __builtin_memcpy(to, from, bytes);
}
namespace std {
using ::memcpy;
}  // namespace std

__device__ inline void __syncwarp(unsigned mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }
__device__ inline int __syncthreads_and(int yes) { return __nvvm_bar0_and(yes); }
__device__ inline int __any_sync(unsigned mask, int yes) { return __nvvm_vote_any_sync(mask, yes); }
__device__ inline int __all_sync(unsigned mask, int yes) { return __nvvm_vote_all_sync(mask, yes); }
__device__ inline unsigned __ballot_sync(unsigned mask, int yes) {
  return __nvvm_vote_ballot_sync(mask, yes);
}
__device__ inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  return __nvvm_redux_sync_umax(value, mask);
}
__device__ inline unsigned __shfl_sync(unsigned mask, unsigned value, int lane) {
  return unsigned(__nvvm_shfl_sync_idx_i32(mask, int(value), lane, 31));
}
__device__ inline float __shfl_xor_sync(unsigned mask, float value, int lane) {
  return __nvvm_shfl_sync_bfly_f32(mask, value, lane, 31);
}
__device__ inline int __ffsll(long long value) { return __builtin_ffsll(value); }
__device__ inline float __fmul_rn(float a, float b) { return __nvvm_mul_rn_f(a, b); }
__device__ inline float __fadd_rn(float a, float b) { return __nvvm_add_rn_f(a, b); }
__device__ inline void __nanosleep(unsigned ns) { __nvvm_nanosleep(ns); }
__device__ inline void __trap() { __builtin_trap(); }
__device__ inline unsigned __cvta_generic_to_shared(const void* at) {
  return unsigned(reinterpret_cast<uintptr_t>((__attribute__((address_space(3))) const void*)at));
}
