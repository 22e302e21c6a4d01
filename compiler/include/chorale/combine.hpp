#pragma once
/// \file
/// Tests and tools check the executor's reductions with this code. It shares no code with the executor.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "chorale/types.hpp"

namespace chorale::reference {

/// Combines two values as docs/numbers.md says. Integers wrap. min and max return NaN if either value is NaN,
/// and -0 is less than +0. For avg this adds, and the caller divides the sum.
template <class A>
A combine(ReduceOp op, A left, A right) {
  switch (op) {
    case ReduceOp::min:
    case ReduceOp::max: {
      const bool least = op == ReduceOp::min;
      if constexpr (!std::is_integral_v<A>) {
        if (std::isnan(left) || std::isnan(right)) return std::isnan(left) ? left : right;
        if (left == right) return std::signbit(left) == least ? left : right;
      }
      return (left < right) == least ? left : right;
    }
    case ReduceOp::prod:
      if constexpr (std::is_integral_v<A>)
        return A(uint64_t(left) * uint64_t(right));
      else
        return left * right;
    case ReduceOp::sum:
    case ReduceOp::avg:
      break;
  }
  if constexpr (std::is_integral_v<A>)
    return A(uint64_t(left) + uint64_t(right));
  else
    return left + right;
}

}  // namespace chorale::reference
