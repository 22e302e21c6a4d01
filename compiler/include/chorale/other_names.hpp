#pragma once
/// \file
/// Users may call types and operators by other names than those of types.hpp. other_names.def lists these
/// names, and the reductions of each type. This header is C++17.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "chorale/types.hpp"
#include "chorale/usage_error.hpp"

namespace chorale {

/// Reports that a type or an operator is refused. what() names it and says why.
struct NoSuchReduction : UsageError {
  NoSuchReduction(const std::string& why, std::string remedy)
      : UsageError(why + "; " + remedy), finding(why), help(std::move(remedy)) {}
  std::string finding, help;
};

/// Returns Chorale's name for the word of another system, in upper or lower case: "f32" for "Float". Returns
/// an unknown word unchanged.
std::string name_here(std::string_view word);

bool names_dtype(std::string_view name);        ///< returns whether types.def has this element type
bool names_reduce_op(std::string_view name);    ///< returns whether types.def has this operator
bool names_other_dtype(std::string_view name);  ///< returns whether other_names.def has this element type
bool names_other_op(std::string_view name);     ///< returns whether other_names.def has this operator

/// Returns the type that moves elements of the type `name`. Elements of both have the same layout in memory.
/// \throws NoSuchReduction if there is none
DType carrier_of(std::string_view name);

/// Returns the bytes of one element; 0 if `name` is unknown or refused.
uint64_t element_bytes(std::string_view name);

/// Names the type and the operator with which kernels perform a reduction.
struct StandsFor {
  DType dtype;
  ReduceOp op;
};

/// Returns how kernels reduce elements of the type `type` by the operator `op`. Types and operators of
/// types.def are returned unchanged.
/// \throws NoSuchReduction if Chorale cannot do it exactly
StandsFor stands_for(std::string_view type, std::string_view op);

struct Plan;

/// Returns whether a plan reduces: its collective, or one of its operations.
bool reduces(const Plan&);

/// Checks the type of a call that names no operator, and so uses the operators of the plan. They may be wrong
/// for a type of other_names.def.
/// \throws NoSuchReduction if the plan reduces and `type` is one of other_names.def
void check_operator_of_plan(const Plan&, std::string_view type);

}  // namespace chorale
