#include "rails.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace chorale::synthesis {
namespace {

/// Returns how many links of a connection lead from switch to switch.
size_t between_switches(const Network& network, const Connection& connection) {
  const auto is_switch = [&](uint32_t node) {
    return network.topology.nodes[node].kind == TopologyNode::Kind::switch_;
  };
  return size_t(std::count_if(connection.links.begin(), connection.links.end(), [&](uint32_t link) {
    return is_switch(network.topology.links[link].from) && is_switch(network.topology.links[link].to);
  }));
}

/// Finds the connection between two ranks.
class Connections {
 public:
  explicit Connections(const Network& network)
      : ranks_(network.ranks), all_(size_t(network.ranks) * network.ranks, no_connection) {
    for (uint32_t at = 0; at < network.connections.size(); ++at)
      all_[size_t(network.connections[at].from) * ranks_ + network.connections[at].to] = at;
  }

  /// Returns a number in Network::connections, or no_connection.
  uint32_t between(uint32_t from, uint32_t to) const { return all_[size_t(from) * ranks_ + to]; }

 private:
  const uint32_t ranks_;
  std::vector<uint32_t> all_;  // by sender and receiver
};

class RailTrees {
 public:
  RailTrees(const Network& network, Way way) : network_(network), connections_(network), way_(way) {
    const std::vector<uint32_t> gpus = network.topology.gpus();
    std::map<std::string, size_t> hosts;
    for (uint32_t rank = 0; rank < network.ranks; ++rank) {
      const auto [at, is_new] = hosts.emplace(network.topology.nodes[gpus[rank]].host, hosts_.size());
      if (is_new) hosts_.emplace_back();
      host_of_.push_back(at->second);
      place_of_.push_back(hosts_[at->second].size());
      hosts_[at->second].push_back(rank);
    }
  }

  const std::vector<uint32_t>& host_of(uint32_t rank) const { return hosts_[host_of_[rank]]; }

  /// Returns the tree of a root that sends over a relay, which is the root itself or a rank of its host.
  /// \param chained  data goes from host to host, so that each rank sends it to one other host at most
  std::optional<Tree> tree(uint32_t root, uint32_t relay, bool chained) const {
    Tree tree{root, 0, std::vector<uint32_t>(network_.ranks, no_connection)};
    if (relay != root && !join(tree, root, relay)) return std::nullopt;
    uint32_t before = relay;
    for (size_t turn = 0; turn < hosts_.size(); ++turn) {
      const size_t host = (host_of_[relay] + turn) % hosts_.size();
      uint32_t sender = relay;
      if (turn != 0) {
        const std::optional<uint32_t> first = first_of(host, before);
        if (!first || !join(tree, before, *first)) return std::nullopt;
        sender = *first;
        if (chained) before = *first;
      }
      for (const uint32_t rank : hosts_[host])
        if (rank != sender && rank != root && !join(tree, sender, rank)) return std::nullopt;
    }
    return tree;
  }

 private:
  /// Returns the connection between a rank and the next one of its tree, further from the root.
  uint32_t connection(uint32_t near, uint32_t far) const {
    return way_ == Way::up ? connections_.between(far, near) : connections_.between(near, far);
  }

  bool join(Tree& tree, uint32_t near, uint32_t far) const {
    tree.over[far] = connection(near, far);
    return tree.over[far] != no_connection;
  }

  /// Returns the rank of a host that gets data from a rank of another host: the one on its rail. Returns
  /// nothing if none can be reached.
  std::optional<uint32_t> first_of(size_t host, uint32_t from) const {
    std::optional<uint32_t> best;
    std::pair<size_t, size_t> least;
    for (const uint32_t rank : hosts_[host]) {
      const uint32_t one = connection(from, rank);
      if (one == no_connection) continue;
      const size_t here = place_of_[from], there = place_of_[rank];
      const std::pair<size_t, size_t> cost{between_switches(network_, network_.connections[one]),
                                           std::max(here, there) - std::min(here, there)};
      if (best && cost >= least) continue;
      best = rank;
      least = cost;
    }
    return best;
  }

  const Network& network_;
  const Connections connections_;
  const Way way_;
  std::vector<std::vector<uint32_t>> hosts_;  // their ranks
  std::vector<size_t> host_of_, place_of_;    // by rank; its place among the ranks of its host
};

}  // namespace

std::vector<Tree> trees_over_rails(const Network& network, std::optional<uint32_t> root, Way way) {
  const RailTrees rails(network, way);
  std::vector<Tree> trees;
  const auto add = [&](uint32_t from, uint32_t relay) {
    std::optional<Tree> tree = rails.tree(from, relay, root.has_value());
    if (tree) trees.push_back(std::move(*tree));
    return tree.has_value();
  };
  if (root) {
    for (const uint32_t relay : rails.host_of(*root))
      if (relay != *root && !add(*root, relay)) return {};
    if (trees.empty() && !add(*root, *root)) return {};  // it is alone on its host
  } else {
    for (uint32_t rank = 0; rank < network.ranks; ++rank)
      if (!add(rank, rank)) return {};
  }
  return trees;
}

std::optional<AllToAllRates> alltoall_over_rails(const Network& network) {
  const uint32_t ranks = network.ranks;
  if (network.connections.size() != size_t(ranks) * (ranks - 1)) return std::nullopt;
  const Connections connections(network);
  AllToAllRates rates;
  std::vector<double> load(network.gb_s.size(), 0);
  for (uint32_t from = 0; from < ranks; ++from) {
    for (uint32_t turn = 1; turn < ranks; ++turn) {
      const uint32_t to = (from + turn) % ranks;
      Path path{from, to, 1.0 / ranks, {connections.between(from, to)}};
      size_t least = between_switches(network, network.connections[path.connections.front()]);
      for (uint32_t relay = 0; relay < ranks && least > 0; ++relay) {
        if (relay == from || relay == to) continue;
        const uint32_t first = connections.between(from, relay), second = connections.between(relay, to);
        if (network.connections[first].port) continue;
        const size_t number = between_switches(network, network.connections[second]);
        if (number >= least) continue;
        least = number;
        path.connections = {first, second};
      }
      for (const uint32_t one : path.connections) add_times(network, one, path.amount, load);
      rates.paths.push_back(std::move(path));
    }
  }
  rates.ns_per_byte = *std::max_element(load.begin(), load.end());
  return rates;
}

}  // namespace chorale::synthesis
