#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/host/concrete.hpp"
#include "chorale/host/names.hpp"

namespace chorale::host {

/// Marks the transfers of collectives. No author's transfer has this tag, so collectives match among
/// themselves.
inline constexpr uint32_t collective_tag = most_tag + 1;

/// Describes a collective while a schedule is unrolled; expand_collectives() leaves none.
struct Collective {
  uint32_t rank = 0, step = 0;  ///< its place, which a mark holds
  std::string kind;             ///< one of collective_names
  Box dst, src;
  uint32_t root = 0;
  ReduceOp reduce = ReduceOp::sum;
};

/// Replaces collectives by copies, groups and sums, on the lane that they are on. Addends are summed in the
/// order of ranks, so that all ranks have the same result. A wait for a collective of another lane waits for
/// that lane.
///
/// \param collectives  in ascending order of rank and step
void expand_collectives(Concrete&, const std::vector<Collective>& collectives, const Schedule&, Mover,
                        Diagnostics&);

}  // namespace chorale::host
