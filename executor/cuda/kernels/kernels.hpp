/// \file
/// These functions find the kernels that are built into the library.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "chorale/factor.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/types.hpp"
#include "interpreters.hpp"

namespace chorale::cuda {

/// Returns the kernels for a dtype and a packet form. Plans that do not reduce share one pair for all dtypes.
Interpreters interpreters_of(DType dtype, PacketForm packet, bool reduces);

/// Returns the kernel with the steps for switches, see multicast_steps.cuh. Null if `packet` is not ll16, if
/// multicast does not combine the dtype, or if the library was built without it.
const void* multicast_interpreter_of(DType dtype, PacketForm packet, bool reduces);

/// Returns the kernel with the steps that encode and decode, see coded_steps.cuh. Null if `packet` is not
/// ll16, if elements of the dtype are not encoded, or if the library was built without it.
const void* coded_interpreter_of(DType dtype, PacketForm packet);

/// Loads the kernel of enqueue_average(). Otherwise CUDA loads it in the first call, and may then wait for
/// all streams. A kernel in one of them may wait for a peer, which waits for this rank.
cudaError_t load_average();

/// Divides `n` elements by `ranks`, as the CPU does, so that a sum becomes an average.
cudaError_t enqueue_average(void* elements, uint64_t n, DType dtype, uint32_t ranks, cudaStream_t stream);

/// Multiplies `n` elements by a factor, as the CPU does, see Executor::scale().
cudaError_t enqueue_scale(void* out, const void* in, uint64_t n, DType dtype, const Factor& factor,
                          cudaStream_t stream);

}  // namespace chorale::cuda
