/// \file
/// Which plan it is, by content.
#pragma once

#include <cstdint>

#include "chorale/plan.hpp"

namespace chorale::interpreter {

/// Quick, of where the plan's parts are in memory and what lies there: if it is the same for the same object,
/// the content is. Of a large plan only this rank's operations are looked at.
uint64_t memory_hash(const Plan& plan, uint32_t rank);

}  // namespace chorale::interpreter
