#pragma once
/// \file
/// Where proofs put what they find.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "../checks/report.hpp"
#include "chorale/proof.hpp"

namespace chorale::proof {

/// In the order in which they are told: what a later one finds follows most often from what an earlier one
/// found.
enum class ProofName : uint8_t {
#define CHORALE_PROOF(name, summary) name,
#include "chorale/passes.def"
};

class Findings {
 public:
  Findings(const Plan& plan, const std::vector<std::string>& allow);

  bool wanted(ProofName proof) const { return wanted_[size_t(proof)]; }
  /// That of the execution that is looked at.
  ProofSetting setting;

  /// See Report::add() and Finding.
  Finding& add(ProofName, Finding::Kind, std::optional<OpPlace> at, std::string text, std::string help = {},
               std::string path = {});

  /// False if there is no need for another finding of this proof that says the same: at the lines of these
  /// operations, in these words. Every rank does the same as a rule.
  bool news(ProofName, const OpPlace& at, const std::optional<OpPlace>& other, const std::string& words);
  bool news(ProofName, const std::string& key);

  /// Of an operation: what tells it from others in such a key.
  std::string line_of(const OpPlace&) const;

  bool any() const;
  /// Adds a note to all of them.
  void add_note(const std::string& text);
  /// Those of the first proof that has some.
  std::vector<Finding> take();

 private:
  static constexpr size_t most = 20;

  const Plan& plan_;
  std::array<bool, std::size(proof_names)> wanted_{};
  std::array<std::vector<Finding>, std::size(proof_names)> found_;
  std::array<std::vector<std::string>, std::size(proof_names)> said_;
};

}  // namespace chorale::proof
