#pragma once
// These divisions are fast for powers of two, which most divisors are. A 64-bit division takes about a
// hundred instructions on a GPU.

#include <cstdint>

#include "chorale/device/macros.hpp"

namespace chorale {
namespace detail {

CHORALE_HD bool is_power_of_two(uint64_t value) { return (value & (value - 1)) == 0 && value != 0; }

CHORALE_COLD uint64_t divide(uint64_t a, uint64_t b) { return a / b; }

/// Returns a / b.
CHORALE_HD uint64_t quotient(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return is_power_of_two(b) ? a >> (__ffsll(int64_t(b)) - 1) : divide(a, b);
#else
  return a / b;
#endif
}

/// Returns a % b.
CHORALE_HD uint64_t modulo(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return is_power_of_two(b) ? a & (b - 1) : a - divide(a, b) * b;
#else
  return a % b;
#endif
}

/// Divides `units` into `count` parts as evenly as possible. The first `more` parts have one unit more than
/// the others.
struct EvenParts {
  uint64_t base, more;

  CHORALE_HD EvenParts(uint64_t units, uint32_t count)
      : base(quotient(units, count)), more(units - base * count) {}

  CHORALE_HD uint64_t first(uint32_t part) const { return part * base + (part < more ? part : more); }
  CHORALE_HD uint64_t size(uint32_t part) const { return base + (part < more ? 1 : 0); }
};

}  // namespace detail
}  // namespace chorale
