/// \file
/// The ranks of an invitation that are threads of one process find their common Group.
#pragma once

#include <memory>
#include <string>

#include "group.hpp"

namespace chorale::world {

/// Returns the group of the ranks that share `name`; all `ranks` ranks call it once. The first rank makes it.
/// \param name  the name of a membership, which no other world has
/// \param options  the options of the first rank count
/// \throws RunError resources on all ranks if there is no memory
std::shared_ptr<Group> group_of_threads(const std::string& name, int ranks, const Group::Options& options);

}  // namespace chorale::world
