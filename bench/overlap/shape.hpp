/// \file
/// Defines the shape of a matrix product.
#pragma once

#include <cstdint>
#include <string>

namespace chorale::overlap {

/// Describes the shape of the whole product C[M, N] = A[M, K] B[K, N]. N is the size on one rank if the ranks
/// share M.
struct Shape {
  uint64_t m = 0, k = 0, n = 0;
  bool operator==(const Shape&) const = default;
  std::string text() const {
    return std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n);
  }
};

}  // namespace chorale::overlap
