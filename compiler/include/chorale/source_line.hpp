#pragma once

#include <cstdint>
#include <string>

namespace chorale {

/// Names a line of an author's program. Line 0 is unknown.
struct SourceLine {
  std::string file;
  uint32_t line = 0;
  bool operator==(const SourceLine&) const = default;
};

}  // namespace chorale
