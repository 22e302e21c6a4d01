/// \file
/// Writes findings as SARIF 2.1.0, which editors and code hosts show at the author's lines.
#pragma once

#include <string>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale::tools {

struct Explained;

/// Collects the findings of several plans, one plan after the other.
class Sarif {
 public:
  /// Adds the findings of one plan.
  /// \param path   the plan's file, for findings without a line of the author
  /// \param level  "error" or "warning"
  void add(const Plan&, const std::string& path, const std::vector<Explained>&, const char* level);
  std::string text() const;

 private:
  std::vector<std::string> results_;  // JSON
};

}  // namespace chorale::tools
