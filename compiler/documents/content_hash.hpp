#pragma once
/// \file
/// Certificates of proofs contain the hashes that are computed here.

#include <cstdint>

#include "chorale/plan.hpp"

namespace chorale {

/// Hashes everything that belongs to no single rank, and the promise of a custom collective.
uint64_t top_hash(const Plan&);
uint64_t rank_hash(const Gpu&);

}  // namespace chorale
