#pragma once
/// \file
/// order_of() decides when each connection carries which chunk.

#include <cstdint>
#include <vector>

#include "packing.hpp"

namespace chorale::synthesis {

/// A chunk of the message and the tree that it takes.
struct Piece {
  uint32_t tree = 0;
  int64_t chunk = 0;  ///< its number among those of its root
};

/// Says in which order chunks travel. All numbers are places in the list of pieces.
struct Order {
  std::vector<std::vector<uint32_t>> of_connection;
  /// When each of them departs, if all connections together take 1. In a reduction the numbers are negative.
  std::vector<std::vector<double>> times;
  std::vector<std::vector<uint32_t>> of_root;  ///< by rank: the order in which its own pieces begin
};

/// Returns by piece of a reduction when its root has the sum.
std::vector<double> ends_of(const Network&, const std::vector<Tree>&, const std::vector<Piece>&,
                            const Order&);

/// Simulates that all connections carry their pieces at a constant rate. A piece leaves a rank when it has
/// arrived there. Pieces that arrive over one connection and leave over another one keep their order, so that
/// signals can be counted. The order of a reduction is that of the flow down its trees, backwards.
/// \param begins    by piece: when its root has it; empty: at 0, and those with the longest ways begin
Order order_of(const Network&, const std::vector<Tree>&, const std::vector<Piece>&,
               const std::vector<double>& begins, Way);

}  // namespace chorale::synthesis
