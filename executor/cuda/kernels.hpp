/// \file
/// The kernels that are built into the library.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "chorale/executor.hpp"
#include "players.hpp"

namespace chorale::cuda {

/// The kernels for a dtype and a form of packets. Plans that do not reduce have one pair for all dtypes.
Players players_of(DType dtype, PacketForm packet, bool reduces);

/// Threads of a block, at most: plans that ask for more run with so many.
constexpr uint32_t most_block_threads = 512;

/// Divides `n` elements by `ranks`, as the CPU does: the result of a sum becomes its average.
void enqueue_average(void* elements, uint64_t n, DType dtype, uint32_t ranks, cudaStream_t stream);

}  // namespace chorale::cuda
