/// \file
/// Names the texts of the skeletons in tools/skeletons, which the build compiles in.
#pragma once

namespace chorale::tools::skeleton {

// A collective without a skeleton in one of the languages does not link.
#define CHORALE_COLLECTIVE(word, ...) extern const char *const word##_cpp, *const word##_py;
#include "chorale/collectives.def"

}  // namespace chorale::tools::skeleton
