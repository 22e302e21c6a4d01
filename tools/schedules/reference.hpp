/// \file
/// Computes the expected result of a host schedule: makes test data, and runs the operations on it one by
/// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chorale/schedule/concrete.hpp"
#include "tools/schedules/launched.hpp"

namespace chorale::tools {

/// Holds every rank's tensors as numbers. It is independent of the executor: it has no streams, no movers,
/// and none of its code. A transfer happens when both ends have reached it. Everything else happens in the
/// order in which it is written; the checks cover other orders. A launch does what its plan's collective
/// says. Inputs are small whole numbers, so that sums are exact in any order.
class Reference {
 public:
  /// \param plan   the plan of a host schedule
  /// \param plans  the plans that it launches; they must outlive this object
  /// \throws Failure for parts that this command cannot run: functions of an application, and plans that do
  /// not define their result
  /// \param params  values that override the schedule's own, for messages
  Reference(const Plan& plan, schedule::Concrete unrolled, const BlockPlans& plans,
            const schedule::Values& params);

  /// Makes inputs, different ones for each turn, and runs the schedule.
  /// \throws Failure if numbers become too large to be exact
  void run(uint64_t turn);

  /// Returns a rank's tensor as it is now, with zeros for elements that nothing has written.
  std::vector<std::byte> bytes(uint32_t rank, uint32_t tensor) const;

  /// Returns an input as the application gave it, even if the schedule has written there.
  std::vector<std::byte> input_bytes(uint32_t rank, uint32_t tensor) const;

  /// Describes the first element that differs.
  std::optional<std::string> differs(uint32_t rank, uint32_t tensor, const std::byte* found) const;

 private:
  using Values = std::vector<double>;

  void fill_inputs(uint64_t turn);
  bool step(uint32_t rank);
  void move(const schedule::Pair& pair);
  void call(uint32_t rank, const schedule::Step& step);
  bool all_have_come(uint32_t rank) const;
  void launch();
  void multiply(uint32_t rank, const schedule::Step& step);
  Values read(uint32_t rank, const schedule::Box& box) const;
  std::vector<std::byte> encoded(uint32_t tensor, const Values& values) const;
  void write(uint32_t rank, const schedule::Box& box, const Values& values);

  const schedule::Schedule& schedule_;
  schedule::Concrete all_;
  const BlockPlans* plans_;
  std::string sizes_;                        // "8 ranks, K = 32"
  std::vector<std::vector<Values>> values_;  // [rank][tensor]; NaN: not written
  std::map<std::pair<uint32_t, uint32_t>, Values>
      given_;                     // by rank and tensor: inputs before the first write
  std::vector<size_t> next_;      // by rank
  std::vector<uint32_t> ends_;    // by pair: the number of ends that have reached it
  std::vector<int64_t> posts_;    // by flag
  std::vector<size_t> launched_;  // by rank: the number of launches that it has passed
  size_t launches_ = 0;           // the number of launches that have run on all ranks
};

}  // namespace chorale::tools
