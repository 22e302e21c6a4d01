#include "linear_program.hpp"

#if defined(CHORALE_CLP)
#include <coin/ClpSimplex.hpp>
#else
#include "chorale/usage_error.hpp"
#endif

namespace chorale::synthesis {

int LinearProgram::row(double least, double most) {
  least_.push_back(least);
  most_.push_back(most);
  return int(least_.size()) - 1;
}

int LinearProgram::column(double cost, std::vector<std::pair<int, double>> factors) {
  costs_.push_back(cost);
  highest_.push_back(infinity);
  columns_.push_back(std::move(factors));
  return int(columns_.size()) - 1;
}

#if !defined(CHORALE_CLP)
std::vector<double> LinearProgram::minimised(double) const {
  throw UsageError(
      "this build cannot solve linear programs: install COIN-OR's Clp (apt-get install coinor-libclp-dev), "
      "and "
      "configure and build again");
}
#else
std::vector<double> LinearProgram::minimised(double seconds) const {
  std::vector<CoinBigIndex> begins{0};
  std::vector<int> rows;
  std::vector<double> factors;
  for (const auto& column : columns_) {
    for (const auto& [row, factor] : column) {
      rows.push_back(row);
      factors.push_back(factor);
    }
    begins.push_back(CoinBigIndex(rows.size()));
  }
  const std::vector<double> zeros(columns_.size(), 0);
  ClpSimplex simplex;
  simplex.setLogLevel(0);
  simplex.loadProblem(int(columns_.size()), int(least_.size()), begins.data(), rows.data(), factors.data(),
                      zeros.data(), highest_.data(), costs_.data(), least_.data(), most_.data());
  simplex.setMaximumSeconds(seconds);
  simplex.initialSolve();
  if (!simplex.isProvenOptimal()) return {};
  const double* const values = simplex.primalColumnSolution();
  return {values, values + columns_.size()};
}
#endif

}  // namespace chorale::synthesis
