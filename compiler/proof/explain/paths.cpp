// This file finds shortest paths by breadth-first search. A step to a node without an event (a
// synchronisation of the threads) has no length. The search costs O(n) for n nodes and their causes.

#include "paths.hpp"

#include <deque>

namespace chorale::proof {

Past::Past(const History& history, uint32_t node, bool published)
    : self_(node), states_(history.nodes().size()) {
  std::deque<uint32_t> open{node};
  states_[node].reached = true;
  // Marks nodes that were published alone. Nodes before them do not count here, unless another path leads
  // there.
  std::vector<bool> alone(states_.size());
  while (!open.empty()) {
    const uint32_t here = open.front();
    open.pop_front();
    if (states_[here].done) continue;
    states_[here].done = true;
    if (alone[here]) continue;
    for (const Cause& cause : history.before(here)) {
      if (published && cause.kind == Cause::Kind::over) continue;
      State& to = states_[cause.node];
      const bool leaf = cause.kind == Cause::Kind::alone;
      const bool cheap = history.nodes()[cause.node].kind == Node::Kind::sync;
      const uint32_t length = states_[here].length + (cheap ? 0 : 1);
      if (to.reached && alone[cause.node] && !leaf) {
        // The nodes before this one count after all.
        alone[cause.node] = false;
        to = {here, length, true, false};
        open.push_back(cause.node);
        continue;
      }
      if (to.reached && (to.done || to.length <= length)) continue;
      if (!to.reached) alone[cause.node] = leaf;
      to.reached = true;
      to.next = here;
      to.length = length;
      cheap ? open.push_front(cause.node) : open.push_back(cause.node);
    }
  }
}

Future::Future(const History& history, uint32_t node, bool published) : after_(history.nodes().size()) {
  // Causes come before their effects, so one pass is enough.
  for (uint32_t at = node + 1; at < after_.size(); ++at) {
    for (const Cause& cause : history.before(at)) {
      if (published && cause.kind == Cause::Kind::over) continue;
      if (cause.node == node || (after_[cause.node] && cause.kind != Cause::Kind::alone)) after_[at] = true;
    }
  }
}

std::vector<uint32_t> Past::path_from(uint32_t node) const {
  std::vector<uint32_t> path;
  for (; node != History::none; node = states_[node].next) path.push_back(node);
  return path;
}

}  // namespace chorale::proof
