#pragma once
/// \file
/// This header has the limit of the threads of a block.

#include <cstdint>

namespace chorale {

/// Limits the threads of a block on GPUs, because the kernels need the registers that more threads would
/// take. A plan that asks for more threads runs with this many. That changes its speed but not its result,
/// because the threads of a block divide its data among them, however many there are.
constexpr uint32_t most_block_threads = 512;

}  // namespace chorale
