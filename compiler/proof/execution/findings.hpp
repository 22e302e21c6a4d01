#pragma once
/// \file
/// Findings collects the findings of all proofs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "chorale/finding.hpp"
#include "compiler/plan/report.hpp"

namespace chorale::proof {

/// Names the proofs in the order in which they are reported. A later finding often follows from an earlier
/// one.
enum class ProofName : uint8_t {
#define CHORALE_PROOF(name, summary) name,
#include "chorale/passes.def"
};

/// Returns the author's line of an event. If the compiler joined several calls to its operation, the call
/// that makes the access, or that has the id, counts. The line is 0 for an event of the application.
SourceLine line_of(const Plan&, const ProofEvent&);

class Findings {
 public:
  Findings(const Plan& plan, const std::vector<std::string>& allow);

  bool wanted(ProofName proof) const { return wanted_[size_t(proof)]; }
  /// Holds the setting of the current execution. New findings copy it.
  ProofSetting setting;

  /// Adds a finding. See Report::add() and Finding for the parameters.
  Finding& add(ProofName, Finding::Kind, std::optional<OpPlace> at, std::string text, std::string help = {},
               std::string path = {});

  /// Returns false if this proof has enough findings, or already has one with these words at the lines of
  /// these operations. Usually every rank does the same, so one finding is enough.
  bool news(ProofName, const OpPlace& at, const std::optional<OpPlace>& other, const std::string& words);
  bool news(ProofName, const std::string& key);

  /// Returns the text that identifies an operation for news(): its source line, or its place in the plan.
  std::string line_of(const OpPlace&) const;
  std::string line_of(const ProofEvent&) const;
  /// Returns the line of an event if the compiler joined several calls to its operation. Other operations
  /// have one line.
  SourceLine joined_line(const ProofEvent&) const;

  /// Removes the findings of a proof for which `follows` returns true.
  template <class Follows>
  void drop(ProofName proof, Follows&& follows) {
    std::erase_if(found_[size_t(proof)], follows);
  }

  bool any() const;
  /// Returns whether this proof has enough findings. Then news() returns false.
  bool full(ProofName proof) const { return said_[size_t(proof)].size() >= most; }
  bool any(ProofName proof) const { return !found_[size_t(proof)].empty(); }
  /// Adds a note to all findings.
  void add_note(const std::string& text);
  /// Returns the findings of the first proof that has any. If these are races, it returns those about values
  /// before them. The values are wrong however the accesses are ordered, see Holding::compare().
  std::vector<Finding> take();

 private:
  static constexpr size_t most = 20;

  void name_lines(Finding&) const;
  void put_missed_writes_first(std::vector<Finding>&) const;

  const Plan& plan_;
  std::array<bool, std::size(proof_names)> wanted_{};
  std::array<std::vector<Finding>, std::size(proof_names)> found_;
  std::array<std::vector<std::string>, std::size(proof_names)> said_;
};

}  // namespace chorale::proof
