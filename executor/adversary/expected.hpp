#pragma once
/// \file
/// Expected computes what outputs must hold. input_value() defines the data of the application.

#include <cstdint>
#include <optional>
#include <vector>

#include "chorale/collective.hpp"
#include "program.hpp"

namespace chorale::adversary {

uint64_t mix(uint64_t);
/// Returns the value that the application writes into a cell of its rank's input for a launch.
uint64_t input_value(uint32_t rank, uint64_t cell, uint32_t launch);

class Expected {
 public:
  Expected(const Plan&, const Program&);

  /// Returns whether the plan declares what it computes. If not, all schedules must give the result of a calm
  /// schedule.
  bool known() const { return known_; }
  /// Returns the value that a cell of an output must hold; none if it may hold any value.
  /// \param sender  the rank whose input the output holds, for collectives that leave this to the plan
  std::optional<uint64_t> value(uint32_t rank, uint64_t cell, uint32_t launch, uint32_t sender) const;
  /// Returns the number of ranks to try as `sender`. This is all ranks if the collective leaves the sender to
  /// the plan, otherwise 1.
  uint32_t senders() const { return known_ && outcome_.leaves_sender_open() ? ranks_ : 1; }
  /// Returns whether this rank receives data. It may receive none if the collective leaves senders and
  /// receivers to the plan.
  bool receives(uint32_t rank) const { return receivers_.empty() || receivers_[rank]; }

 private:
  const Outcome outcome_;
  bool known_;
  ReduceOp op_ = ReduceOp::sum;
  uint32_t ranks_;
  uint64_t segment_ = 1;         ///< the cells per segment, in inputs and outputs
  std::vector<bool> receivers_;  ///< by rank; empty: all ranks receive
};

}  // namespace chorale::adversary
