#pragma once
/// \file
/// A LinearProgram is minimised by COIN-OR's Clp.

#include <memory>
#include <utility>
#include <vector>

namespace chorale::synthesis {

class LinearProgram {
 public:
  static constexpr double infinity = 1e300;

  /// Adds a constraint: the sum of its columns is from `least` to `most`.
  int row(double least, double most);
  /// Adds a variable of at least 0, with its factor in each of some rows.
  int column(double cost, std::vector<std::pair<int, double>> factors);

  /// Finds the values with the least cost.
  /// \param seconds  the time limit
  /// \returns the value of each column; empty if there is no solution or not enough time
  std::vector<double> minimised(double seconds) const;

 private:
  std::vector<double> least_, most_, costs_;
  std::vector<std::vector<std::pair<int, double>>> columns_;
};

}  // namespace chorale::synthesis
