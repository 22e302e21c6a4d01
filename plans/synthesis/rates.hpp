#pragma once
/// \file
/// Linear programs choose how much data each connection carries, so that a collective takes the least time.

#include <cstdint>
#include <optional>
#include <vector>

#include "network.hpp"

namespace chorale::synthesis {

/// Holds a solution. All amounts are parts of the message, which is 1.
struct Rates {
  double ns_per_byte = 0;  ///< the least time, if ranks alone forward data and routes are fixed
  std::vector<std::vector<double>> of_connection;  ///< by stage and connection: what it carries
  std::vector<double> of_root;                     ///< by rank: what begins or ends there
};

/// Solves stages that follow each other, whose parts have the same roots.
/// \param weights  by rank: the part of the message that has its root there; empty: any parts
/// \param few      look for few connections, which then carry more each: better for long messages
/// \returns nothing if the time was not enough
std::optional<Rates> rates_of_trees(const Network&, const std::vector<Way>& stages,
                                    const std::vector<double>& weights, bool few, uint64_t seed,
                                    double seconds);

/// Holds one path of data in an all-to-all.
struct Path {
  uint32_t from = 0, to = 0;
  double amount = 0;  ///< part of the message of one rank
  std::vector<uint32_t> connections;
};

struct AllToAllRates {
  double ns_per_byte = 0;  ///< the least time, or that of the busiest link over rails
  std::vector<Path> paths;
};

/// Solves an all-to-all.
/// \returns nothing if the time was not enough
std::optional<AllToAllRates> rates_of_alltoall(const Network&, uint64_t seed, double seconds);

}  // namespace chorale::synthesis
