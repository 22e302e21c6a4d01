#pragma once
/// \file
/// Makes a large plan without a program, so that the proofs alone are measured.

#include <cstdint>

#include "chorale/plan.hpp"

namespace chorale::bench {

/// Makes the ring all-reduce of `ranks` ranks (3 or more) with one thread block each. It synchronises as
/// MSCCL++'s DSL does, with 12 operations per rank and step of the ring.
Plan ring_allreduce(uint32_t ranks);

}  // namespace chorale::bench
