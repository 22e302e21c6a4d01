#pragma once
/// \file
/// These functions find operations and their lines. An operation that the compiler made of several calls has
/// several lines.

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Returns the operation at a place; null if there is none.
const Op* find_op(const Plan&, const OpPlace&);

/// Returns the line of the last call of an operation.
SourceLine last_line_of(const Plan&, const Op&);

}  // namespace chorale
