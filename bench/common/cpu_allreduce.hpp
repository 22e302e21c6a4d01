/// \file
/// Holds the data of all-reduces on the CPU that are timed, and how often to call them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace chorale::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Returns the number of calls that take about `budget` seconds together if one of them takes `one`.
inline int calls_in(double budget, double one) {
  return int(std::clamp(budget / std::max(one, 1e-7), 3.0, 20000.0));
}

/// Returns an element of a rank's input. It is a whole number, so that the sum is exact in any order.
inline float element(int rank, size_t at) { return float(int((at * 31 + size_t(rank) * 17) % 1021) - 510); }

inline void fill(std::vector<float>& data, int rank) {
  for (size_t at = 0; at < data.size(); ++at) data[at] = element(rank, at);
}

/// Returns how many elements differ from the sum of all ranks' inputs.
inline size_t wrong_elements(const std::vector<float>& sums, int ranks) {
  size_t wrong = 0;
  for (size_t at = 0; at < sums.size(); ++at) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += element(rank, at);
    wrong += sums[at] != sum;
  }
  return wrong;
}

}  // namespace chorale::bench
