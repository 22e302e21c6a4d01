#pragma once
/// \file
/// A Promise says what a collective must write to its outputs.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "chorale/collective.hpp"
#include "compiler/proof/execution/memory.hpp"
#include "value.hpp"

namespace chorale::proof {

class Promise {
 public:
  Promise(const Plan&, const Memory&);

  /// Returns false if the collective promises nothing, as "test" does.
  bool any() const { return outcome_.is_known(); }
  /// Returns why no message can be cut as the collective requires; empty if one can.
  const std::string& impossible() const { return impossible_; }
  /// Returns whether the program decides which rank sends to which. Then each output that is written is the
  /// whole input of one rank.
  bool of_some_sender() const { return outcome_.leaves_sender_open(); }

  /// Returns the inputs whose sum must be in the cell at atom `at` of an output.
  /// \param sender  the rank whose input it is, if of_some_sender()
  std::vector<Origin> origins(uint32_t rank, uint64_t at, uint32_t sender) const;
  /// Returns whether several parts of one rank's input are among them. Then the rank's number does not say
  /// which part is meant.
  bool has_several_parts(uint32_t rank, uint64_t at) const;
  /// Returns the sum of these inputs, or nothing if nothing is promised there.
  std::optional<Sum> sum(uint32_t rank, uint64_t at, uint32_t sender);

 private:
  const Plan& plan_;
  const Outcome outcome_;
  std::string impossible_;
  uint64_t segment_ = 0;                      ///< atoms; the same in inputs and outputs
  std::unordered_map<uint64_t, Sum> of_all_;  ///< by atom of the inputs
};

}  // namespace chorale::proof
