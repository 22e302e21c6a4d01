/// \file
/// Launches the kernels of chorale/fused on CUDA streams. The operators call these functions, so that only
/// fused_kernels.cu needs a CUDA compiler, and it needs no PyTorch.
#pragma once

#include <chorale/fused/experts.hpp>
#include <cstdint>

namespace chorale::torch_fused {

/// Enqueues dispatch() and combine() on `stream`, a cudaStream_t.
/// \throws as they do
void dispatch_on_cuda(fused::ExpertExchange& exchange, const fused::Dispatch<int32_t>& call, void* stream);
void dispatch_on_cuda(fused::ExpertExchange& exchange, const fused::Dispatch<int64_t>& call, void* stream);
void combine_on_cuda(fused::ExpertExchange& exchange, const fused::Combine& call, void* stream);

}  // namespace chorale::torch_fused
