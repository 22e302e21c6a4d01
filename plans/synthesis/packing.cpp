#include "packing.hpp"

#include <algorithm>
#include <utility>

#include "max_flow.hpp"

namespace chorale::synthesis {
namespace {

/// Holds trees of one shape that do not reach all ranks yet.
struct Partial {
  Tree tree;
  std::vector<bool> reached;
  std::vector<uint32_t> order;  ///< the ranks that are reached, in the order of their distance
};

class Packing {
 public:
  Packing(const Network& network, std::vector<int64_t> capacities, const std::vector<int64_t>& roots, Way way)
      : network_(network), left_(std::move(capacities)), way_(way) {
    for (uint32_t rank = 0; rank < network.ranks; ++rank) {
      if (roots[rank] == 0) continue;
      Partial partial{{rank, roots[rank], std::vector<uint32_t>(network.ranks, no_connection)}, {}, {rank}};
      partial.reached.assign(network.ranks, false);
      partial.reached[rank] = true;
      partials_.push_back(std::move(partial));
    }
    leaving_.resize(network.ranks);
    for (uint32_t at = 0; at < network.connections.size(); ++at) leaving_[from(at)].push_back(at);
  }

  std::vector<Tree> packed() {
    for (size_t at = 0; at < partials_.size(); ++at) {
      while (partials_[at].order.size() < network_.ranks)
        if (!grow(at)) return {};
      done_ = at + 1;
    }
    std::vector<Tree> trees;
    for (Partial& partial : partials_) trees.push_back(std::move(partial.tree));
    return trees;
  }

 private:
  uint32_t from(uint32_t at) const { return network_.connections[at].near(way_); }
  uint32_t to(uint32_t at) const { return network_.connections[at].far(way_); }

  /// Adds a connection to as many trees of one shape as the others leave it. The rest stays as it is.
  bool grow(size_t at) {
    // Ranks near the root come first, so that trees are flat.
    for (size_t near = 0; near < partials_[at].order.size(); ++near) {
      for (const uint32_t one : leaving_[partials_[at].order[near]]) {
        if (partials_[at].reached[to(one)] || left_[one] == 0) continue;
        const int64_t taken = allowed(at, one);
        if (taken == 0) continue;
        if (taken < partials_[at].tree.chunks) {
          Partial rest = partials_[at];
          rest.tree.chunks -= taken;
          partials_[at].tree.chunks = taken;
          partials_.push_back(std::move(rest));
        }
        Partial& partial = partials_[at];
        left_[one] -= taken;
        partial.tree.over[to(one)] = one;
        partial.reached[to(one)] = true;
        partial.order.push_back(to(one));
        return true;
      }
    }
    return false;
  }

  /// Returns for how many trees a connection may be used, so that all others can still be completed. A set of
  /// ranks that a tree has not reached must have a way in for it. So the sets that count are those which the
  /// connection enters and which this tree has reached elsewhere.
  int64_t allowed(size_t at, uint32_t one) const {
    int64_t most = std::min(left_[one], partials_[at].tree.chunks);
    for (const uint32_t rank : partials_[at].order) {
      if (most == 0) return 0;
      if (rank != from(one)) most = std::min(most, spare(one, rank));
    }
    return most;
  }

  /// Returns the least spare capacity into a set with two ranks: the connection's target, and `other`. The
  /// connection's source is outside.
  int64_t spare(uint32_t one, uint32_t other) const {
    const size_t ranks = network_.ranks, first = ranks, source = ranks + partials_.size() - done_,
                 sink = source + 1;
    MaxFlow flow(sink + 1);
    int64_t all = 0;
    for (uint32_t edge = 0; edge < left_.size(); ++edge)
      if (left_[edge]) flow.arc(from(edge), to(edge), left_[edge]);
    for (size_t at = done_; at < partials_.size(); ++at) {
      const Partial& partial = partials_[at];
      all += partial.tree.chunks;
      flow.arc(source, first + at - done_, partial.tree.chunks);
      for (const uint32_t rank : partial.order) flow.arc(first + at - done_, rank, unlimited);
    }
    flow.arc(source, from(one), unlimited);
    flow.arc(to(one), sink, unlimited);
    flow.arc(other, sink, unlimited);
    return std::max<int64_t>(0, flow.between(source, sink) - all);
  }

  static constexpr int64_t unlimited = int64_t{1} << 40;

  const Network& network_;
  std::vector<int64_t> left_;
  const Way way_;
  std::vector<std::vector<uint32_t>> leaving_;
  std::vector<Partial> partials_;
  size_t done_ = 0;  ///< the first partials, which reach all ranks
};

}  // namespace

Branches::Branches(const Network& network, const Tree& tree, bool by_source) {
  for (const uint32_t one : tree.over) {
    if (one == no_connection) continue;
    all_.emplace_back(by_source ? network.connections[one].from : network.connections[one].to, one);
  }
  std::sort(all_.begin(), all_.end());
}

std::vector<uint32_t> Branches::at(uint32_t rank) const {
  std::vector<uint32_t> connections;
  for (auto one = std::lower_bound(all_.begin(), all_.end(), std::pair{rank, 0u});
       one != all_.end() && one->first == rank; ++one)
    connections.push_back(one->second);
  return connections;
}

std::vector<Tree> pack_trees(const Network& network, std::vector<int64_t> capacities,
                             const std::vector<int64_t>& roots, Way way) {
  return Packing(network, std::move(capacities), roots, way).packed();
}

}  // namespace chorale::synthesis
