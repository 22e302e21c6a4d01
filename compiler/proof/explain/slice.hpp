#pragma once
/// \file
/// A Slice selects the part of a history that matters and turns it into the events of a witness.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/witness.hpp"
#include "history.hpp"

namespace chorale::proof {

/// Collects events, the most important ones first. When it is full, further events are left out.
class Slice {
 public:
  Slice(const Plan& plan, const History& history) : plan_(plan), history_(history) {}

  /// Adds a step. Steps of one operation become one event.
  void add(uint32_t node);
  /// Adds a step that a finding is about, with the line of the access.
  void add_culprit(uint32_t node, const ProofEvent&, std::string mark);
  /// Adds an event that could not be executed.
  void add_culprit(const ProofEvent&, std::string mark);
  /// Adds an operation that waits forever, or one that never happens.
  size_t add_stuck(const ProofEvent&, std::string mark);
  size_t add_missing(const ProofEvent&);
  /// Adds nodes each of which caused the next. Nodes without an event are skipped.
  void add_path(const std::vector<uint32_t>& path);
  /// Records that event `from` would come before event `to`.
  void link(size_t from, size_t to) { paths_.push_back({{from, true}, {to, true}}); }

  /// Returns the agent of a node, such as "rank 0, thread block 1".
  std::string who(uint32_t node) const;
  /// Returns a node in words, such as "signal at ring.cpp:39".
  std::string name(uint32_t node) const;
  /// Returns whether a node is shown as an event on a path.
  bool speaks(uint32_t node) const;

  void finish(Witness&) const;

 private:
  struct Entry {
    uint32_t node;  ///< none: the event did not happen
    uint64_t turn;
    WitnessEvent event;
  };
  struct Stop {
    size_t entry;
    bool publishes;  ///< on the way from the previous stop
  };

  size_t put(uint32_t node);
  size_t put(Entry);
  WitnessEvent event_of(const Node&) const;

  const Plan& plan_;
  const History& history_;
  std::vector<Entry> entries_;
  std::vector<std::vector<Stop>> paths_;
};

/// Returns an operation in words, such as "copy input[0:1] -> scratch[0:1]" or "signal memory channel 0 to
/// rank 1".
std::string describe(const Plan&, const OpPlace&);

/// Returns the author's line, such as "mine.cpp:7", or the place in the plan: "rank 0, thread block 1, op 3".
/// \param after  true: of several calls that the compiler joined, the last one counts, else the first one
std::string place_of(const Plan&, const OpPlace&, bool after = false);

}  // namespace chorale::proof
