#pragma once
/// \file
/// These functions find operations and their lines. An operation that the compiler made of several calls has
/// several lines.

#include <cstddef>
#include <cstdint>

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Returns the operation at a place; null if there is none.
const Op* find_op(const Plan&, const OpPlace&);

/// Names the lists of an operation.
enum class OpList : uint8_t { sources, destinations, ids };

/// Returns the line of the call that an operation has an entry of a list from.
/// \param position  of the entry in its list
SourceLine line_of_entry(const Plan&, const Op&, OpList, size_t position);

/// Returns the line of the last call of an operation.
SourceLine last_line_of(const Plan&, const Op&);

}  // namespace chorale
