/// \file
/// Makes the JSON schema of plan files, for editors and for authors who validate their plans.
#pragma once

#include <string>

namespace chorale::tools {

/// Returns the schema, of draft 2020-12, made from the table of operations. The schema has only what every
/// plan needs. It accepts every plan that the reader and the checks accept, but they may refuse a plan that
/// it accepts.
std::string plan_schema();

}  // namespace chorale::tools
