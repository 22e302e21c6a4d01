#pragma once
/// \file
/// Reads the mutants that an earlier run has judged, from the lines that it has written.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "campaign.hpp"

namespace chorale::mutation {

class Judged {
 public:
  /// \param text  lines of json_line(); an incomplete last line is ignored
  /// \throws std::invalid_argument that names the first line that is something else
  explicit Judged(std::string_view text);

  /// Fills in the fate of a mutant of a plan. Returns false if it is not known.
  bool recall(const std::string& plan, Mutant&) const;
  /// Returns true if any mutant of a plan was judged, which means that the plan was found to be right.
  bool begun(const std::string& plan) const { return plans_.count(plan); }

 private:
  struct Fated {
    Fate fate;
    std::string by, text;
    uint64_t seed;
  };
  void take(const nlohmann::json& line);

  std::map<std::string, Fated> mutants_;  // by the part of the line that identifies the mutant
  std::set<std::string> plans_;
};

}  // namespace chorale::mutation
