#pragma once
/// \file
/// conflicts_are_in_order() checks the order of accesses that conflict, without comparing every two.

#include <functional>
#include <vector>

#include "accesses.hpp"

namespace chorale::host {

/// Returns whether of every two accesses that overlap, and of which one writes, one is before the other. Two
/// accesses of one event are not compared.
///
/// \param list    the accesses to the memory of one tensor on one rank, each after all that are before it
/// \param before  is transitive, and the same for all accesses of an event
bool conflicts_are_in_order(const ConcreteTensor&, const std::vector<const Access*>& list,
                            const std::function<bool(const Event&, const Event&)>& before);

}  // namespace chorale::host
