#pragma once
/// \file
/// The content hash of a plan tells whether two plans run alike.

#include <cstdint>

#include "chorale/plan.hpp"

namespace chorale {

/// Returns a hash of everything that a run depends on. It is the same in every process. Authors' lines and
/// unknown keys do not count.
uint64_t content_hash(const Plan&);

}  // namespace chorale
