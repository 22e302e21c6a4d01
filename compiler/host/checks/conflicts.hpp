#pragma once
/// \file
/// Whether accesses that conflict are in order, without looking at every two of them.

#include <functional>
#include <vector>

#include "accesses.hpp"

namespace chorale::host {

/// Whether of every two accesses that overlap, of which one writes, one is before the other. Those of one
/// event are not looked at.
///
/// \param list    of the memory of one tensor on one rank; each stands behind all that are before it
/// \param before  transitive, and the same for all accesses of an event
bool conflicts_are_in_order(const ConcreteTensor&, const std::vector<const Access*>& list,
                            const std::function<bool(const Event&, const Event&)>& before);

}  // namespace chorale::host
