/// \file
/// Declares the copy of rows of bytes that are at equal distances.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

namespace chorale::cuda {

/// Describes rows of bytes.
struct Rows {
  char* at;
  uint64_t distance;  ///< from the start of a row to the start of the next one, in bytes
};

/// Enqueues a copy of `rows` rows of `bytes` bytes. The device of the stream must be current.
/// \param what  what is copied, for an error
/// \throws RunError
void copy_rows(Rows to, Rows from, uint64_t bytes, uint64_t rows, cudaStream_t stream, std::string_view what);

}  // namespace chorale::cuda
