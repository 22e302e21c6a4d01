/// \file
/// Says how a test runs its ranks.
#pragma once

#include <ostream>

namespace chorale::test {

enum class Ranks { processes, threads };

inline void PrintTo(Ranks how, std::ostream* out) {
  *out << (how == Ranks::processes ? "processes" : "threads");
}

}  // namespace chorale::test
