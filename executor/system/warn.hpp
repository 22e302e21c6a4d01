#pragma once

#include <string>

namespace chorale::system {

/// Writes a warning to the log of this library, which goes to standard error.
void warn(const std::string& text);

}  // namespace chorale::system
