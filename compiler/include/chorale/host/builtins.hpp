#pragma once
/// \file
/// Lists the functions that every backend has, and says what views they take. This is the one home of these
/// rules, for the check [shapes] and for the code that binds a schedule.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/types.hpp"

namespace chorale::host {

/// Describes a view as a built-in function sees it.
struct Operand {
  DType dtype = DType::f32;
  std::vector<uint64_t> shape, strides;  ///< by axis, strides in elements
  std::string text;                      ///< for messages
};

bool is_builtin(std::string_view function);
std::vector<std::string_view> builtin_names();

/// Returns the axis that `sum` is over.
int64_t summed_axis(const std::map<std::string, int64_t>& attributes);

/// Returns what is wrong with the views of a call of a built-in function, as in "matmul of f32[2, 3] and
/// f32[2, 3] to f32[2, 2]: the extents do not fit". Returns "" if nothing is wrong, or if the function is no
/// built-in one.
std::string misfit(std::string_view function, std::span<const Operand> writes, std::span<const Operand> reads,
                   const std::map<std::string, int64_t>& attributes);

}  // namespace chorale::host
