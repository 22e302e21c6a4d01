#pragma once
/// \file
/// Defines the data of the application, and what outputs must hold.

#include <cstdint>
#include <optional>
#include <vector>

#include "chorale/collective.hpp"
#include "program.hpp"

namespace chorale::adversary {

uint64_t mix(uint64_t);
/// Returns what the application puts into a cell of its rank's input for a launch.
uint64_t input_value(uint32_t rank, uint64_t cell, uint32_t launch);

class Expected {
 public:
  Expected(const Plan&, const Program&);

  /// Returns false if the plan does not say what it computes. Then all schedules must give what a calm one
  /// gives.
  bool known() const { return known_; }
  /// Returns what a cell of an output must hold, or none if it may hold anything.
  /// \param sender  the rank whose input the output is, for collectives that leave this to the plan
  std::optional<uint64_t> value(uint32_t rank, uint64_t cell, uint32_t launch, uint32_t sender) const;
  /// Returns the number of ranks to try as `sender`: 1, or all when the collective leaves the sender to the
  /// plan.
  uint32_t senders() const { return known_ && outcome_.leaves_sender_open() ? ranks_ : 1; }
  /// Returns false if the collective leaves it to the plan which rank sends to which, and the plan sends
  /// nothing to this rank.
  bool receives(uint32_t rank) const { return receivers_.empty() || receivers_[rank]; }

 private:
  const Outcome outcome_;
  bool known_;
  ReduceOp op_ = ReduceOp::sum;
  uint32_t ranks_;
  uint64_t segment_ = 1;         ///< cells, of inputs and outputs alike
  std::vector<bool> receivers_;  ///< by rank; empty: all
};

}  // namespace chorale::adversary
