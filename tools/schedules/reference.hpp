/// \file
/// Computes what a host schedule must give: makes test data, and runs the operations on it one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chorale/host/concrete.hpp"
#include "tools/schedules/launched.hpp"

namespace chorale::tools {

/// Every rank's tensors as numbers. It is independent of the executor: it has no lanes, no movers, and none
/// of its code. Transfers happen when both ends have come, everything else in the order in which it is
/// written; the checks look at other orders. A launch does what its plan's collective says. Inputs are small
/// whole numbers, so that sums are exact in any order.
class Reference {
 public:
  /// \param plan   the plan of a host schedule
  /// \param plans  those that it launches; they must live as long
  /// \throws Failure for parts that this command cannot run: functions of an application, and plans that
  ///         promise nothing
  Reference(const Plan& plan, host::Concrete unrolled, const BlockPlans& plans);

  /// Makes inputs, other ones for each turn, and runs the schedule.
  /// \throws Failure if numbers grow too large to be exact
  void run(uint64_t turn);

  /// Returns a tensor of a rank as it is now, with zeros for elements that nothing has written.
  std::vector<std::byte> bytes(uint32_t rank, uint32_t tensor) const;

  /// Returns an input as the application gave it, whether or not the schedule has written there.
  std::vector<std::byte> input_bytes(uint32_t rank, uint32_t tensor) const;

  /// Describes the first element that differs.
  std::optional<std::string> differs(uint32_t rank, uint32_t tensor, const std::byte* found) const;

 private:
  using Values = std::vector<double>;

  void fill_inputs(uint64_t turn);
  bool step(uint32_t rank);
  void move(const host::Pair& pair);
  void call(uint32_t rank, const host::Step& step);
  bool all_have_come(uint32_t rank) const;
  void launch();
  void multiply(uint32_t rank, const host::Step& step);
  Values read(uint32_t rank, const host::Box& box) const;
  std::vector<std::byte> encoded(uint32_t tensor, const Values& values) const;
  void write(uint32_t rank, const host::Box& box, const Values& values);

  const host::Schedule& schedule_;
  host::Concrete all_;
  const BlockPlans* plans_;
  std::vector<std::vector<Values>> values_;  // [rank][tensor]; NaN: nothing has written it
  std::map<std::pair<uint32_t, uint32_t>, Values>
      given_;                     // by rank and tensor: inputs before the first write
  std::vector<size_t> next_;      // by rank
  std::vector<uint32_t> ends_;    // by pair: the number of ends that have come
  std::vector<int64_t> posts_;    // by flag
  std::vector<size_t> launched_;  // by rank: launches that it has passed
  size_t launches_ = 0;           // the number of launches done, for all ranks at once
};

}  // namespace chorale::tools
