#pragma once
/// \file
/// The part of a history that matters, as the events of a witness.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chorale/witness.hpp"
#include "history.hpp"

namespace chorale::proof {

/// Collects events, what matters most first: what comes when there is no more room is left out.
class Slice {
 public:
  Slice(const Plan& plan, const History& history) : plan_(plan), history_(history) {}

  /// Steps of one operation are one event.
  void add(uint32_t node);
  void add_culprit(uint32_t node, std::string mark);
  /// One that could not be played.
  void add_culprit(const ProofEvent&, std::string mark);
  /// An operation that waits for ever, or one that never happens.
  size_t add_stuck(const OpPlace&, uint32_t launch, std::string mark);
  size_t add_missing(const OpPlace&, uint32_t launch);
  /// Nodes that caused each other, the first one first. Adds those that say something.
  void add_path(const std::vector<uint32_t>& path);
  /// One of these events would come behind the other.
  void link(size_t from, size_t to) { paths_.push_back({{from, true}, {to, true}}); }

  /// "rank 0, thread block 1"
  std::string who(uint32_t node) const;
  /// "signal at ring.cpp:39"
  std::string name(uint32_t node) const;
  /// Whether a node is an event that says something on a path.
  bool speaks(uint32_t node) const;

  void finish(Witness&) const;

 private:
  struct Entry {
    uint32_t node;  ///< none: it did not happen
    uint64_t turn;
    WitnessEvent event;
  };
  struct Stop {
    size_t entry;
    bool publishes;  ///< the way from the stop before
  };

  size_t put(uint32_t node);
  size_t put(Entry);
  WitnessEvent event_of(const Node&) const;
  void fill(WitnessEvent&) const;

  const Plan& plan_;
  const History& history_;
  std::vector<Entry> entries_;
  std::vector<std::vector<Stop>> paths_;
};

/// "copy input[0:1] -> scratch[0:1]", "signal memory channel 0 to rank 1"
std::string describe(const Plan&, const OpPlace&);

/// "mine.cpp:7", or where it is in the plan: "rank 0, thread block 1, op 3".
std::string place_of(const Plan&, const OpPlace&);

}  // namespace chorale::proof
