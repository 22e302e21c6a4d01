/// \file
/// Finds codes by a search, without the arithmetic of the library.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "chorale/fused/codes.hpp"

namespace chorale::test {

/// Returns the finite code whose value is nearest; of two that are as near, the one with even bits.
template <class Q>
Q nearest_code(double scaled) {
  struct Known {
    double value;
    int bits;
  };
  static const std::vector<Known> all = [] {
    std::vector<Known> codes;
    for (int bits = 0; bits < 256; ++bits) {
      const double value = fused::value_of_code(std::bit_cast<Q>(uint8_t(bits)));
      if (std::isfinite(value) && !(value == 0 && bits != 0)) codes.push_back({value, bits});
    }
    std::sort(codes.begin(), codes.end(), [](const Known& a, const Known& b) { return a.value < b.value; });
    return codes;
  }();
  const auto above = std::lower_bound(all.begin(), all.end(), scaled,
                                      [](const Known& code, double value) { return code.value < value; });
  if (above == all.end()) return std::bit_cast<Q>(uint8_t(all.back().bits));
  if (above == all.begin()) return std::bit_cast<Q>(uint8_t(above->bits));
  const auto below = above - 1;
  const double up = above->value - scaled, down = scaled - below->value;
  const bool takes_above = up < down || (up == down && above->bits % 2 == 0);
  return std::bit_cast<Q>(uint8_t((takes_above ? above : below)->bits));
}

}  // namespace chorale::test
