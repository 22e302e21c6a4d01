#pragma once
/// \file
/// A LinearProgram is minimised by COIN-OR's Clp.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace chorale::synthesis {

class LinearProgram {
 public:
  static constexpr double infinity = 1.7976931348623157e308;  ///< Clp's COIN_DBL_MAX

  /// Adds a constraint: the sum of its columns is from `least` to `most`.
  int row(double least, double most);
  /// Adds a variable of at least 0, with its factor in each of some rows.
  int column(double cost, std::vector<std::pair<int, double>> factors);

  void set_cost(int column, double cost) { costs_[size_t(column)] = cost; }
  void set_most(int column, double most) { highest_[size_t(column)] = most; }

  /// Finds the values with the least cost.
  /// \param seconds  the time limit
  /// \returns the value of each column; empty if there is no solution or not enough time
  /// \throws UsageError if Clp cannot be loaded
  std::vector<double> minimised(double seconds) const;

 private:
  std::vector<double> least_, most_;     // by row
  std::vector<double> costs_, highest_;  // by column
  std::vector<std::vector<std::pair<int, double>>> columns_;
};

}  // namespace chorale::synthesis
