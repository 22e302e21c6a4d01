#pragma once
/// \file
/// Ways through a history.

#include <cstdint>
#include <vector>

#include "history.hpp"

namespace chorale::proof {

/// What is before a node.
class Past {
 public:
  /// \param published  only what it can see the writes of
  Past(const History&, uint32_t node, bool published);

  /// Not so for the node itself.
  bool has(uint32_t node) const { return node != self_ && states_[node].reached; }

  /// Nodes from `node`, which is in it, to the one whose past it is: of all ways the one that says least.
  std::vector<uint32_t> path_from(uint32_t node) const;

 private:
  struct State {
    uint32_t next = History::none;  ///< towards the node whose past it is
    uint32_t length = 0;            ///< operations on the way
    bool reached = false, done = false;
  };
  uint32_t self_;
  std::vector<State> states_;
};

}  // namespace chorale::proof
