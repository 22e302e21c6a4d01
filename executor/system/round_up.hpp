/// \file
/// round_up() rounds a size up to a whole number of units.
#pragma once

#include <cstdint>

namespace chorale {

/// Returns the smallest multiple of `unit` > 0 that is at least `value`. Both are in the same unit, for
/// example bytes.
constexpr uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace chorale
