/// \file
/// The JSON schema of plan files, for editors, and for those who write plans and validate them.
#pragma once

#include <string>

namespace chorale::tools {

/// Of draft 2020-12, from the table of operations. What a plan has to have whatever it says is in it: a plan
/// that the reader and the checks take is valid, and one that is valid may still be refused by them.
std::string plan_schema();

}  // namespace chorale::tools
