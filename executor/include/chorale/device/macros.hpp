#pragma once
// What differs between a CUDA and a plain C++ translation unit, and nothing else.
//
// CHORALE_FN  a function of the device library: device code in a CUDA translation unit, ordinary code
// elsewhere. The same
//             source is never compiled for both sides of one translation unit, so it may use what only one
//             side has.
// CHORALE_HD  small functions without synchronisation that host code of a CUDA translation unit wants as
// well.
// CHORALE_COLD  what is long and seldom runs, as CHORALE_FN but for being called: a GPU that runs code for
// the first time waits for it, also for jumping over it. By value: what is passed by reference is in memory.

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "kernels of the device library need a GPU of sm_80 or later: give nvcc -arch=sm_80, or a later one"
#endif

#if defined(__CUDACC__)
#define CHORALE_FN __device__ __forceinline__
#define CHORALE_COLD inline __device__ __noinline__
#define CHORALE_HD __host__ __device__ __forceinline__
#else
#define CHORALE_FN inline
#define CHORALE_COLD inline
#define CHORALE_HD inline
#endif
