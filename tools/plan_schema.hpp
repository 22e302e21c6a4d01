/// \file
/// Writes the JSON schema of plan files, for editors and for authors who validate their plans.
#pragma once

#include <string>

namespace chorale::tools {

/// Returns the schema, of draft 2020-12, made from the table of operations. It has only what every plan
/// needs: a plan that the reader and the checks accept is valid, but they may refuse a valid one.
std::string plan_schema();

}  // namespace chorale::tools
