#pragma once
/// \file
/// These functions say how the data of a collective flows, from its row of collectives.def.

#include <vector>

#include "chorale/collective.hpp"
#include "network.hpp"

namespace chorale::synthesis {

/// Returns whether each rank sends another part to each rank, so that data flows along paths and not trees.
constexpr bool has_paths(const CollectiveInfo& collective) {
  return collective.input == CollectiveInfo::Cut::parts && collective.output == CollectiveInfo::Cut::parts;
}

/// Returns the stages of a collective without paths. Sums are made up trees; what all ranks get goes down.
inline std::vector<Way> ways_of(const CollectiveInfo& collective) {
  std::vector<Way> ways;
  if (collective.reduces()) ways.push_back(Way::up);
  const bool each_gets_own = collective.only_root_receives() || collective.output_is_part();
  if (!collective.reduces() || !each_gets_own) ways.push_back(Way::down);
  return ways;
}

}  // namespace chorale::synthesis
