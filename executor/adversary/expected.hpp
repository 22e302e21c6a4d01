#pragma once
/// \file
/// The data of the application, and what outputs must hold.

#include <cstdint>
#include <optional>
#include <vector>

#include "program.hpp"

namespace chorale::adversary {

uint64_t mix(uint64_t);
/// What the application puts into a cell of its rank's input for a launch.
uint64_t input_value(uint32_t rank, uint64_t cell, uint32_t launch);
uint64_t combine(ReduceOp, uint64_t left, uint64_t right);

class Expected {
 public:
  Expected(const Plan&, const Program&);

  /// False: the plan does not say. Then all schedules must give what a calm one gives.
  bool known() const { return kind_ != Kind::unknown; }
  /// A cell of an output; none if it may hold anything. `sender`: whose input it is, for collectives that
  /// leave this to the plan.
  std::optional<uint64_t> value(uint32_t rank, uint64_t cell, uint32_t launch, uint32_t sender) const;
  /// 1, or as many as there may be.
  uint32_t senders() const { return kind_ == Kind::sender ? ranks_ : 1; }
  /// False: the collective leaves it to the plan who sends to whom, and this one sends nothing to the rank.
  bool receives(uint32_t rank) const { return receivers_.empty() || receivers_[rank]; }

 private:
  enum class Kind { unknown, all, part_of_all, each, part_of_each, root, sender, post };

  uint64_t all(uint64_t cell, uint32_t launch) const;

  Kind kind_ = Kind::unknown;
  ReduceOp op_ = ReduceOp::sum;
  uint32_t ranks_ = 0, root_ = 0;
  uint64_t segment_ = 1;         ///< cells, of inputs and outputs alike
  std::vector<bool> receivers_;  ///< by rank; empty: all
  std::vector<std::vector<std::vector<Contribution>>> post_;
};

}  // namespace chorale::adversary
