#pragma once
/// \file
/// What a collective promises of its outputs.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory.hpp"
#include "value.hpp"

namespace chorale::proof {

class Promise {
 public:
  Promise(const Plan&, const Memory&);

  /// False: nothing, as of a test.
  bool any() const { return kind_ != Kind::nothing; }
  /// Why no message can be cut as the collective says; empty: one can.
  const std::string& impossible() const { return impossible_; }
  /// Who sends to whom is the program's own: the whole of an output is the input of one rank.
  bool of_some_sender() const { return kind_ == Kind::sender; }

  /// The inputs of which the cell at atom `at` of an output is to be the sum; `sender`: whose input it is if
  /// it is that of some sender.
  std::vector<Origin> origins(uint32_t rank, uint64_t at, uint32_t sender) const;
  /// Whether these are different parts of one rank's input: then its number does not tell which is meant.
  bool has_several_parts(uint32_t rank, uint64_t at) const;
  /// Their sum; none: nothing is promised there.
  std::optional<Sum> sum(uint32_t rank, uint64_t at, uint32_t sender);

 private:
  enum class Kind { nothing, all, part_of_all, each, part_of_each, root, sender, own };

  const Plan& plan_;
  Kind kind_ = Kind::nothing;
  std::string impossible_;
  uint64_t segment_ = 0;                      ///< atoms, of inputs and outputs alike
  std::unordered_map<uint64_t, Sum> of_all_;  ///< by atom of the inputs
};

}  // namespace chorale::proof
