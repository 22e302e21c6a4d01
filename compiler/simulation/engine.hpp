#pragma once
/// \file
/// run() simulates the discrete events of one launch.

#include <cstdint>
#include <vector>

#include "chorale/simulate.hpp"
#include "costs.hpp"
#include "recording.hpp"

namespace chorale::simulation {

/// Says when a thread block ran an operation.
struct OpTime {
  uint32_t op;
  double begin_ns;
};

struct Times {
  double end_ns = 0;
  std::vector<LinkUse> links;            ///< by rank
  std::vector<double> topology_busy_ns;  ///< by Topology::links
  std::vector<std::vector<OpTime>> ops;  ///< by chain, in order, if they are wanted
  std::vector<double> ends_ns;           ///< by chain
};

/// Simulates one launch.
/// \param routes  those of the machine's topology; null if it has none
/// \param ranks  the number of ranks of the plan
Times run(const Recording&, const std::vector<Cost>&, const Machine&, const Routes* routes, uint32_t ranks,
          bool ops);

}  // namespace chorale::simulation
