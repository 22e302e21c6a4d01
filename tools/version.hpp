/// \file
/// Declares the version and the commit, which the build sets.
#pragma once

#ifndef CHORALE_VERSION
#define CHORALE_VERSION "unknown"
#endif

namespace chorale::tools {

/// Holds the output of `git describe` at the time of the build; "" if there was none.
extern const char* const built_from;

}  // namespace chorale::tools
