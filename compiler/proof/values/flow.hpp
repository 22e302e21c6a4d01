#pragma once
/// \file
/// A Flow says what a cell can hold if all operations may take place in any order.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compiler/proof/execution/symbolic_executor.hpp"
#include "value.hpp"

namespace chorale::proof {

/// Observes the first launch of an execution. A thread block does the same operations in every execution, so
/// every execution has these moves.
class Flow : public Observer {
 public:
  explicit Flow(const SymbolicExecutor&);

  void begin(uint32_t rank, uint32_t launch) override;
  void move(uint32_t chain, const SymbolicStep&, std::span<const Touch>) override;

  /// Returns those of the origins from which no moves lead to a cell. Then the cell holds them in no
  /// execution, also if accesses race. Returns an empty list when it would take too long.
  std::vector<Origin> unreachable(uint32_t cell, const std::vector<Origin>& wanted);

 private:
  /// Limits the cells that all calls of unreachable() visit together.
  static constexpr uint64_t most_visits = uint64_t(1) << 26;

  void sort();

  const SymbolicExecutor& executor_;
  std::vector<std::pair<uint32_t, uint32_t>> moves_;  // to a cell, from a cell
  size_t sorted_ = 0;                                 // this many moves are sorted
  std::vector<std::optional<Origin>> input_;          // by cell: its content before the launch
  std::vector<bool> seen_;                            // by cell
  uint64_t visits_ = 0;
};

}  // namespace chorale::proof
