#pragma once
/// \file
/// Every backend has the built-in functions, such as matmul. This header has the rules for their views. The
/// check [shapes] and the binding of schedules both use these rules.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/types.hpp"

namespace chorale::schedule {

/// Describes a view that is passed to a built-in function.
struct Operand {
  DType dtype = DType::f32;
  std::vector<uint64_t> shape, strides;  ///< by axis, strides in elements
  std::string text;                      ///< the view as messages show it
};

bool is_builtin(std::string_view function);
std::vector<std::string_view> builtin_names();

/// Returns the axis that `sum` sums over, from the attributes of the call.
int64_t summed_axis(const std::map<std::string, int64_t>& attributes);

/// Returns what is wrong with the views of a call of a built-in function, such as "matmul of f32[2, 3] and
/// f32[2, 3] to f32[2, 2]: the extents do not fit". Returns "" if nothing is wrong, or if the function is not
/// built in.
std::string misfit(std::string_view function, std::span<const Operand> writes, std::span<const Operand> reads,
                   const std::map<std::string, int64_t>& attributes);

}  // namespace chorale::schedule
