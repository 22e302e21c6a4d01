#pragma once
/// \file
/// These bounds hold for every plan: no plan moves the data in less time, whether it stores, loads or lets
/// copy engines move it.

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "network.hpp"

namespace chorale::synthesis {

/// Says how much of the whole data has its root at each rank, and which way it flows.
struct Demand {
  std::vector<double> weights;  ///< by rank; their sum is 1
  Way way = Way::down;
};

/// Holds a bound, and the ranks whose data must leave them, or reach them if it flows up.
struct Cut {
  double ns_per_byte = 0;
  std::vector<uint32_t> ranks;
};

/// Returns the worst cut of a demand: the largest ratio of the data that must cross a set of links to their
/// rate, over all sets of ranks, switches and NICs.
Cut worst_cut(const Network&, const Demand&);

/// Returns the worst cut around one rank, one host or one pod for an all-to-all in which each rank sends 1
/// byte in all.
Cut worst_group_of_alltoall(const Network&);

/// Returns a bound for an all-reduce of 1 byte: the worst cut, or the rate of all ranks together, over which
/// every part crosses 2 (ranks - 1) times.
Cut worst_cut_of_allreduce(const Network&);

/// Returns words for a cut, such as "the links around gpu0 and gpu1".
std::string words_of(const Network&, const Cut&);

}  // namespace chorale::synthesis
