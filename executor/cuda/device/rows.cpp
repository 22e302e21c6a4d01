#include "rows.hpp"

#include <climits>

#include "error.hpp"

namespace chorale::cuda {

void copy_rows(Rows to, Rows from, uint64_t bytes, uint64_t rows, cudaStream_t stream,
               std::string_view what) {
  constexpr uint64_t most_pitch = INT_MAX;  // CUDA's limit
  if (rows > 1 && to.distance <= most_pitch && from.distance <= most_pitch) {
    check(
        cudaMemcpy2DAsync(to.at, to.distance, from.at, from.distance, bytes, rows, cudaMemcpyDefault, stream),
        what);
    return;
  }
  for (uint64_t row = 0; row < rows; ++row) {
    check(cudaMemcpyAsync(to.at + row * to.distance, from.at + row * from.distance, bytes, cudaMemcpyDefault,
                          stream),
          what);
  }
}

}  // namespace chorale::cuda
