#pragma once
/// \file
/// Reports the results of a campaign.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "campaign.hpp"

namespace chorale::mutation {

/// Counts mutants by their fate, without keeping them.
class Tally {
 public:
  /// Adds all mutants of a plan.
  void add(const std::string& plan, const std::vector<Mutant>&);
  /// Records a plan that was not mutated.
  void leave_out(const std::string& plan, const std::string& why) { left_out_[plan] = why; }

  uint64_t count(Fate fate) const;
  uint64_t count() const;
  size_t plans() const { return plans_; }

  /// Returns "12000 mutants of 60 plans: 11500 killed, 500 survived, 0 holes".
  std::string summary() const;
  /// Returns a page with the tables, and how it was made.
  std::string markdown(const std::vector<const Operator*>&, const std::string& command,
                       const std::string& commit) const;

 private:
  struct Row {
    std::map<std::string, uint64_t> killed, survived;  // by check, by reason
    uint64_t holes = 0, crashes = 0;
  };
  std::map<const Operator*, Row> rows_;
  std::map<std::string, std::string> left_out_;
  std::vector<std::string> examples_;  // the first for each reason and operator
  std::vector<std::string> loud_;      // holes and crashes
  std::map<std::pair<const Operator*, std::string>, bool> told_;
  size_t plans_ = 0;
};

/// Returns "allgather_ring_4: drop_nop at rank 0, thread block 1, op 3 (ring.cpp:12)".
std::string name_of(const std::string& plan, const Mutant&);

/// Returns one mutant as a JSON object on one line.
std::string json_line(const std::string& plan, const Mutant&);

}  // namespace chorale::mutation
