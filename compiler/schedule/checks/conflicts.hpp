#pragma once

#include <functional>
#include <vector>

#include "accesses.hpp"

namespace chorale::schedule {

/// Returns whether every two overlapping accesses, of which one writes, are ordered. Two accesses of one
/// event are not compared.
///
/// \param list  the accesses to the memory of one tensor on one rank; each comes after all that are before it
/// \param before  must be transitive, and the same for all accesses of an event
bool conflicts_are_in_order(const ConcreteTensor&, const std::vector<const Access*>& list,
                            const std::function<bool(const Event&, const Event&)>& before);

}  // namespace chorale::schedule
