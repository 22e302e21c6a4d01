#pragma once
/// \file
/// Finds types and operators by the names that users have for them, beyond those of types.hpp.
/// other_names.def lists the names, and says which reductions of them there are. C++17.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "chorale/types.hpp"
#include "chorale/usage_error.hpp"

namespace chorale {

/// Says that a type or an operator is refused. what() names it and says why.
struct NoSuchReduction : UsageError {
  NoSuchReduction(const std::string& why, std::string remedy)
      : UsageError(why + "; " + remedy), finding(why), help(std::move(remedy)) {}
  std::string finding, help;
};

/// Returns Chorale's name for what others call `word`, in upper or lower case: "f32" for "Float". Returns an
/// unknown word as it is.
std::string name_here(std::string_view word);

bool names_dtype(std::string_view name);        ///< one of types.def
bool names_reduce_op(std::string_view name);    ///< one of types.def
bool names_other_dtype(std::string_view name);  ///< one that other_names.def has
bool names_other_op(std::string_view name);     ///< one that other_names.def has

/// Returns the type that moves elements of the type `name`, which lie in memory as its elements do.
/// \throws NoSuchReduction if there is none
DType carrier_of(std::string_view name);

/// Returns the bytes of one element; 0 if nothing is called `name`, or if it is refused.
uint64_t element_bytes(std::string_view name);

/// Says how kernels do a reduction.
struct StandsFor {
  DType dtype;
  ReduceOp op;
};

/// Returns how kernels reduce elements of the type `type` by the operator `op`. Types and operators of
/// types.def stand for themselves.
/// \throws NoSuchReduction if Chorale cannot do it exactly
StandsFor stands_for(std::string_view type, std::string_view op);

struct Plan;

/// Returns whether a reduction operator matters to a plan: to its collective, or to one of its operations.
bool reduces(const Plan&);

/// Checks a call without an operator, which then takes the plan's. A type of other_names.def may need another
/// one.
/// \throws NoSuchReduction if the plan reduces and `type` is one of other_names.def
void check_operator_of_plan(const Plan&, std::string_view type);

}  // namespace chorale
