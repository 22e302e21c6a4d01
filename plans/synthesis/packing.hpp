#pragma once
/// \file
/// pack_trees() turns the amounts that connections carry into trees, by Edmonds' theorem: if every rank can
/// receive all data from its roots, there are trees that together carry no more than those amounts.

#include <cstdint>
#include <utility>
#include <vector>

#include "network.hpp"

namespace chorale::synthesis {

inline constexpr uint32_t no_connection = ~uint32_t{0};

/// Data that begins at the root flows down the tree: each rank receives it over one connection. Data that is
/// added up flows up the tree: each rank sends it over that connection.
struct Tree {
  uint32_t root = 0;
  int64_t chunks = 0;          ///< how many chunks take this tree
  std::vector<uint32_t> over;  ///< by rank: its connection; no_connection for the root and ranks outside
};

/// Lists the connections of a tree by one of their ends. A tree of a path has few of many ranks.
class Branches {
 public:
  /// \param by_source  true: by Connection::from; false: by Connection::to
  Branches(const Network&, const Tree&, bool by_source);

  /// Returns the connections at a rank.
  std::vector<uint32_t> at(uint32_t rank) const;

 private:
  std::vector<std::pair<uint32_t, uint32_t>> all_;  // rank and connection, ordered
};

/// Packs trees that reach all ranks.
/// \param capacities  by connection: how many chunks it may carry
/// \param roots       by rank: how many chunks begin there
/// \returns no trees if the capacities are too small
std::vector<Tree> pack_trees(const Network&, std::vector<int64_t> capacities,
                             const std::vector<int64_t>& roots, Way);

}  // namespace chorale::synthesis
