/// \file
/// Says how two plans differ, rank by rank and operation by operation.
#pragma once

#include <string>

#include "chorale/plan.hpp"

namespace chorale::tools {

/// Returns the differences as lines, in which "- " stands before what only `left` has and "+ " before what
/// only `right` has. Returns "" if there are none. Authors' lines and certificates are not compared.
/// \param canonical  whether ids may differ that mean the same, see canonicalise()
std::string differences(Plan left, Plan right, bool canonical);

}  // namespace chorale::tools
