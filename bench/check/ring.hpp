#pragma once
/// \file
/// A large plan without a program: what a proof takes can be measured alone.

#include <cstdint>

#include "chorale/plan.hpp"

namespace chorale::bench {

/// The ring all-reduce of `ranks` (3 or more), one thread block each, synchronised like MSCCL++'s DSL does:
/// 12 operations for each rank and step of the ring.
Plan ring_allreduce(uint32_t ranks);

}  // namespace chorale::bench
