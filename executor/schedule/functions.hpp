/// \file
/// This file declares the built-in functions of host schedules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chorale/schedule.hpp"

namespace chorale::schedule_run {

/// Returns why the views of a call of a built-in function do not fit; "" if they do, or if the function is
/// not built in.
std::string misfit(const HostCall& call);

/// Describes a built-in matrix product over its views: C[b] = A[b] B[b]; linear transposes B[b].
struct Product {
  uint64_t batches = 1, m = 1, n = 1, k = 1;
  bool transposed = false;
  /// Gives strides in elements: from batch to batch, row to row, column to column.
  struct Strides {
    uint64_t batch = 0, row = 0, column = 0;
  } c, a, b;
};
/// Returns the product of a call of matmul or linear that has no misfit().
Product product_of(const HostCall& call);

/// Returns the name under which a schedule's own calls find a built-in function, even if the application has
/// a function of the same name.
std::string built_in_name(std::string_view function);

/// Returns the built-in functions on the CPU. They accumulate floats narrower than f32 in f32, in the order
/// of k.
HostFunctions cpu_functions();

}  // namespace chorale::schedule_run
