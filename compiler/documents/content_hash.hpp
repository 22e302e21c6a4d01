#pragma once
/// \file
/// Computes the parts of content_hash().

#include <cstdint>

#include "chorale/plan.hpp"

namespace chorale {

/// Hashes everything that is not of one rank, with the promise of a custom collective.
uint64_t top_hash(const Plan&);
uint64_t rank_hash(const Gpu&);

}  // namespace chorale
