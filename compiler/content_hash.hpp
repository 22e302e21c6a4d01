#pragma once
/// \file
/// The parts of content_hash().

#include <cstdint>

#include "chorale/plan.hpp"

namespace chorale {

/// Of what is not of one rank, with what a custom collective promises.
uint64_t top_hash(const Plan&);
uint64_t rank_hash(const Gpu&);

}  // namespace chorale
