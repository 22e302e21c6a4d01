/// \file
/// These functions turn the results of CUDA calls into exceptions.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string_view>

namespace chorale::cuda {

/// Throws if a call failed.
/// \param what the call and its purpose: "cudaMalloc of 64 MiB of scratch"
/// \throws RunError with `what`, CUDA's message, the device and the remedy; `resources` if something ran out
void check(cudaError_t result, std::string_view what);
void check(CUresult result, std::string_view what);

/// Logs the error that check() would throw. For destructors.
void check_quietly(cudaError_t result, std::string_view what) noexcept;
void check_quietly(CUresult result, std::string_view what) noexcept;

}  // namespace chorale::cuda
