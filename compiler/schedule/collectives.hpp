#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/schedule/concrete.hpp"
#include "chorale/schedule/names.hpp"

namespace chorale::schedule {

/// Marks the transfers of collectives. No author's transfer has this tag, so transfers of collectives match
/// only each other.
inline constexpr uint32_t collective_tag = most_tag + 1;

/// Describes a collective while a schedule is unrolled. expand_collectives() replaces all of them.
struct Collective {
  uint32_t rank = 0, step = 0;  ///< its place, where a mark stands
  std::string kind;             ///< one of collective_names
  Box dst, src;
  uint32_t root = 0;
  ReduceOp reduce = ReduceOp::sum;
};

/// Replaces collectives by copies, groups and sums on the same stream. Addends are summed in the order of the
/// ranks, so all ranks get the same result. A wait for a collective of another stream waits for that stream.
///
/// \param collectives  in ascending order of rank and step
void expand_collectives(Concrete&, const std::vector<Collective>& collectives, const Schedule&, Mover,
                        Diagnostics&);

}  // namespace chorale::schedule
