#pragma once
/// \file
/// The functions that every backend has, and what views they take: the one home of these rules, for the
/// check [shapes] and for who binds a schedule.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/types.hpp"

namespace chorale::host {

/// A view, as a built-in function sees it.
struct Operand {
  DType dtype = DType::f32;
  std::vector<uint64_t> shape, strides;  ///< by axis, strides in elements
  std::string text;                      ///< for messages
};

bool is_builtin(std::string_view function);
std::vector<std::string_view> builtin_names();

/// The axis that `sum` is over.
int64_t summed_axis(const std::map<std::string, int64_t>& attributes);

/// What is wrong with the views of a call of a built-in function, as in "matmul of f32[2, 3] and f32[2, 3] to
/// f32[2, 2]: the extents do not fit"; "" if nothing is, or it is none.
std::string misfit(std::string_view function, std::span<const Operand> writes, std::span<const Operand> reads,
                   const std::map<std::string, int64_t>& attributes);

}  // namespace chorale::host
