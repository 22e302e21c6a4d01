#pragma once
/// \file
/// These functions route data over rails without a linear program: within a host each GPU reaches each other
/// one directly, and to another host data goes to the GPU on the same rail. They serve any number of ranks.

#include <cstdint>
#include <optional>
#include <vector>

#include "packing.hpp"
#include "rates.hpp"

namespace chorale::synthesis {

/// Returns trees of equal parts. The root, or a rank of its host, sends to all ranks of that host and to one
/// rank of each other host, which sends to the others there. This rank is the one to which the fewest links
/// between switches lead, and of several the one with the nearest place in its host.
/// \param root  of all trees. They then begin over the other ranks of its host, so that the root sends each
///   part once, and go from host to host. None: one tree for each rank, whose root sends to each host.
/// \returns no trees if a connection is missing
std::vector<Tree> trees_over_rails(const Network&, std::optional<uint32_t> root, Way);

/// Returns the rates if each pair of ranks sends directly, or over a rank of the sender's host from which
/// fewer links between switches lead to the receiver: the one on the receiver's rail.
///
/// \returns nothing if a pair has no connection
std::optional<AllToAllRates> alltoall_over_rails(const Network&);

}  // namespace chorale::synthesis
