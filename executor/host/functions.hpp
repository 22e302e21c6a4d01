/// \file
/// The built-in functions of host schedules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chorale/schedule.hpp"

namespace chorale::hostrun {

/// What is wrong with the views of a call of a built-in function; "" if nothing is, or it is none.
std::string misfit(const HostCall& call);

/// How a built-in matrix product goes over its views: C[b] = A[b] B[b], or B[b] transposed (linear).
struct Product {
  uint64_t batches = 1, m = 1, n = 1, k = 1;
  bool transposed = false;
  /// In elements: from batch to batch, row to row, column to column.
  struct Strides {
    uint64_t batch = 0, row = 0, column = 0;
  } c, a, b;
};
/// Of a call of matmul or linear without a misfit.
Product product_of(const HostCall& call);

/// The name under which a schedule's own calls find a built-in function, whichever the application has of its
/// name.
std::string built_in_name(std::string_view function);

/// On the CPU: floats narrower than f32 are accumulated in f32, in the order of k.
HostFunctions cpu_functions();

}  // namespace chorale::hostrun
