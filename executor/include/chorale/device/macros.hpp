#pragma once
// These macros hold all differences between a CUDA and a plain C++ translation unit.
//
//   CHORALE_FN    marks a function of the device library: device code in a CUDA translation unit, ordinary
//                 code elsewhere. The same source is never compiled for both sides of one translation unit,
//                 so it may use features that only one side has.
//   CHORALE_HD    marks a small function without synchronisation that host code of a CUDA translation unit
//                 uses as well.
//   CHORALE_COLD  marks a long function that seldom runs. It is like CHORALE_FN, but is not inlined. A GPU
//                 must fetch inlined code before it can jump over it, which takes time. Pass arguments by
//                 value, because arguments passed by reference must be in memory.

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

namespace chorale::detail {
// A program may launch kernels of one type on the CPU and on CUDA, from a C++ source and from a CUDA source.
// Functions that launch have this type as a template parameter, so that the linker keeps both of them.
#if defined(__CUDACC__)
using Side = struct OnCuda;
#else
using Side = struct OnCpu;
#endif
}  // namespace chorale::detail
