#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/host/concrete.hpp"
#include "chorale/host/names.hpp"

namespace chorale::host {

/// Of no author's transfer: collectives match among themselves.
inline constexpr uint32_t collective_tag = most_tag + 1;

/// A collective while a schedule is unrolled; nothing of it is left behind expand_collectives().
struct Collective {
  uint32_t rank = 0, step = 0;  ///< where it is: a mark that holds its place
  std::string kind;             ///< one of collective_names
  Box dst, src;
  uint32_t root = 0;
  ReduceOp reduce = ReduceOp::sum;
};

/// Makes copies, groups and sums of collectives, on the lane that they are on. Addends are summed in the
/// order of ranks, so that all ranks have the same. A wait for one of another lane waits for that lane.
///
/// \param collectives  by rank and step, in ascending order
void expand_collectives(Concrete&, const std::vector<Collective>& collectives, const Schedule&, Mover,
                        Diagnostics&);

}  // namespace chorale::host
