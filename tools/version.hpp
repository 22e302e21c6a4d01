/// \file
/// The version and the commit, as the build gives them.
#pragma once

#ifndef CHORALE_VERSION
#define CHORALE_VERSION "unknown"
#endif

namespace chorale::tools {

/// What `git describe` said when this was built; "" where nobody could say.
extern const char* const built_from;

}  // namespace chorale::tools
