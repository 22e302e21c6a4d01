/// \file
/// Fills and compares matrices of the benchmark, with test data whose results are known and with data for
/// timing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "bench/common/timing.hpp"

namespace chorale::overlap {

using bench::check;

/// Describes a part of a matrix that is spread over the ranks.
struct Part {
  uint64_t height = 0, width = 0;  ///< the size of this part, which is row-major bf16
  uint64_t row = 0, column = 0;    ///< the place in the whole matrix where it begins
};

/// Describes exact data, in which one of each `period` columns of A is not zero. So products are whole
/// numbers up to 256, and exact in bf16 in any order of the sums.
struct Exact {
  uint64_t salt = 0, period = 1;
};

/// Enqueue a fill of the matrix. enqueue_fill() writes A, or B (whose row is A's column) if `of_b`.
/// enqueue_random() writes values in [-1, 1), because zeros would make products faster than they are.
/// \param who  gives other values for each number
void enqueue_fill(cudaStream_t stream, void* to, Part part, Exact exact, bool of_b, uint64_t who);
void enqueue_random(cudaStream_t stream, void* to, uint64_t elements, uint64_t seed);

/// Enqueue a count of the wrong elements in a part of A, or in a part of C = A B over `deep` columns of A and
/// the B of `who`.
void enqueue_compare_a(cudaStream_t stream, const void* found, Part part, Exact exact, uint64_t* wrong);
void enqueue_compare_c(cudaStream_t stream, const void* found, Part part, Exact exact, uint64_t deep,
                       uint64_t who, uint64_t* wrong);

}  // namespace chorale::overlap
