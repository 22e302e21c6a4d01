/// \file
/// The results of CUDA calls, as exceptions.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string_view>

namespace chorale::cuda {

/// \param what  the call and what it was for: "cudaMalloc of 64 MiB of scratch"
/// \throws RunError with `what`, CUDA's words, the device and the remedy; `resources` if something ran out
void check(cudaError_t result, std::string_view what);
void check(CUresult result, std::string_view what);

/// For destructors: logs what check() would throw.
void check_quietly(cudaError_t result, std::string_view what) noexcept;
void check_quietly(CUresult result, std::string_view what) noexcept;

}  // namespace chorale::cuda
