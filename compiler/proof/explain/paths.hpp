#pragma once
/// \file
/// Past finds paths through a history.

#include <cstdint>
#include <vector>

#include "history.hpp"

namespace chorale::proof {

/// Holds the nodes that come before a given node.
class Past {
 public:
  /// \param published  true: only nodes whose writes the given node can see
  Past(const History&, uint32_t node, bool published);

  /// Returns whether a node comes before the given node. Returns false for the given node itself.
  bool has(uint32_t node) const { return node != self_ && states_[node].reached; }

  /// Returns the path with the fewest operations from `node`, which must be in the past, to the given node.
  std::vector<uint32_t> path_from(uint32_t node) const;

 private:
  struct State {
    uint32_t next = History::none;  ///< the next node on the way to the given node
    uint32_t length = 0;            ///< operations on the path
    bool reached = false, done = false;
  };
  uint32_t self_;
  std::vector<State> states_;
};

/// Lists the nodes that come after a given node. `Future(history, a, published).has(b)` says the same as
/// `Past(history, b, published).has(a)`, for any number of nodes b at the cost of one.
class Future {
 public:
  /// \param published  true: only nodes that can see what the given node wrote
  Future(const History&, uint32_t node, bool published);

  bool has(uint32_t node) const { return after_[node]; }

 private:
  std::vector<bool> after_;  // by node
};

}  // namespace chorale::proof
