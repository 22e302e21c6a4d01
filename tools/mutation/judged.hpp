#pragma once
/// \file
/// The mutants that an earlier run has judged, from the lines that it left.

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
  /// \param text  lines of json_line(); one that was not written to its end counts for nothing
  /// \throws std::invalid_argument naming the first line that is of something else
  explicit Judged(std::string_view text);

  /// Fills in what became of a mutant of a plan; false if that is not known.
  bool recall(const std::string& plan, Mutant&) const;
  /// Whether any mutant of a plan was judged: then the plan was found to be right.
  bool begun(const std::string& plan) const { return plans_.count(plan); }

 private:
  struct Fated {
    Fate fate;
    std::string by, text;
    uint64_t seed;
  };
  void take(const nlohmann::json& line);

  std::map<std::string, Fated> mutants_;  // by what the line says of which it is
  std::set<std::string> plans_;
};

}  // namespace chorale::mutation
