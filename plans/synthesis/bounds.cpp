#include "bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "max_flow.hpp"

namespace chorale::synthesis {
namespace {

/// Flows have whole numbers, in which all weights together are this much.
constexpr double whole = double(int64_t{1} << 44);

/// Looks for cuts between ranks and one rank that needs the data of all.
class Cuts {
 public:
  Cuts(const Network& network, const Demand& demand)
      : network_(network), demand_(demand), gpus_(network.topology.gpus()) {}

  /// Raises `worst` as long as a cut before `target` is worse.
  void raise(uint32_t target, Cut& worst) const {
    // Newton's method: the ratio of each smallest cut is the next guess, until no cut is worse.
    for (int round = 0; round < 64; ++round) {
      const std::vector<bool> side = smallest_cut(target, worst.ns_per_byte);
      const auto [data, rate] = data_and_rate(side);
      const double ratio = rate > 0 ? data / rate : 0;
      if (!(ratio > worst.ns_per_byte * (1 + 1e-9))) return;
      worst.ns_per_byte = ratio;
      worst.ranks.clear();
      for (uint32_t rank = 0; rank < gpus_.size(); ++rank)
        if (side[gpus_[rank]]) worst.ranks.push_back(rank);
    }
  }

 private:
  std::vector<bool> smallest_cut(uint32_t target, double ns_per_byte) const {
    const size_t nodes = network_.topology.nodes.size();
    MaxFlow flow(nodes + 1);
    for (size_t at = 0; at < network_.fastest_gb_s.size(); ++at) {
      const TopologyLink& link = network_.topology.links[at];
      const auto capacity = int64_t(std::min(whole, network_.fastest_gb_s[at] * ns_per_byte * whole));
      const auto [from, to] = ends_of(link);
      flow.arc(from, to, capacity);
    }
    for (uint32_t rank = 0; rank < gpus_.size(); ++rank)
      if (rank != target) flow.arc(nodes, gpus_[rank], int64_t(demand_.weights[rank] * whole));
    flow.between(nodes, gpus_[target]);
    std::vector<bool> side = flow.source_side();
    side.pop_back();
    return side;
  }

  std::pair<double, double> data_and_rate(const std::vector<bool>& side) const {
    double data = 0, rate = 0;
    for (uint32_t rank = 0; rank < gpus_.size(); ++rank)
      data += side[gpus_[rank]] ? demand_.weights[rank] : 0;
    for (size_t at = 0; at < network_.fastest_gb_s.size(); ++at) {
      const TopologyLink& link = network_.topology.links[at];
      const auto [from, to] = ends_of(link);
      rate += side[from] && !side[to] ? network_.fastest_gb_s[at] : 0;
    }
    return {data, rate};
  }

  /// Returns the end from which data of a root flows, and the other one.
  std::pair<uint32_t, uint32_t> ends_of(const TopologyLink& link) const {
    return demand_.way == Way::up ? std::pair{link.to, link.from} : std::pair{link.from, link.to};
  }

  const Network& network_;
  const Demand& demand_;
  const std::vector<uint32_t> gpus_;
};

/// Returns how many ranks are looked at as targets of cuts. Each cut is a bound, so fewer of them are right
/// too, and all of many ranks would take too long.
uint32_t targets_of(const Network& network) { return network.ranks <= 64 ? network.ranks : 8; }

/// Returns the rate from a group of ranks to all others, or back.
double rate_between(const Network& network, const std::vector<uint32_t>& group, bool back) {
  const std::vector<uint32_t> gpus = network.topology.gpus();
  const size_t nodes = network.topology.nodes.size();
  constexpr double unit = 1e6;  // flows have whole numbers
  MaxFlow flow(nodes + 2);
  for (size_t at = 0; at < network.fastest_gb_s.size(); ++at) {
    const TopologyLink& link = network.topology.links[at];
    flow.arc(back ? link.to : link.from, back ? link.from : link.to,
             int64_t(network.fastest_gb_s[at] * unit));
  }
  std::vector<bool> inside(network.ranks, false);
  for (const uint32_t rank : group) inside[rank] = true;
  for (uint32_t rank = 0; rank < network.ranks; ++rank) {
    if (inside[rank]) {
      flow.arc(nodes, gpus[rank], int64_t(whole));
    } else {
      flow.arc(gpus[rank], nodes + 1, int64_t(whole));
    }
  }
  return double(flow.between(nodes, nodes + 1)) / unit;
}

/// Returns the rate at which all ranks together can send, or receive.
double rate_of_all(const Network& network, bool send) {
  double rate = 0;
  for (size_t at = 0; at < network.fastest_gb_s.size(); ++at) {
    const TopologyLink& link = network.topology.links[at];
    const TopologyNode& end = network.topology.nodes[send ? link.from : link.to];
    rate += end.kind == TopologyNode::Kind::gpu ? network.fastest_gb_s[at] : 0;
  }
  return rate;
}

}  // namespace

Cut worst_cut(const Network& network, const Demand& demand) {
  Cut worst{.ns_per_byte = 1e-9, .ranks = {}};
  const Cuts cuts(network, demand);
  for (uint32_t target = 0; target < targets_of(network); ++target) cuts.raise(target, worst);
  return worst;
}

Cut worst_group_of_alltoall(const Network& network) {
  const std::vector<uint32_t> gpus = network.topology.gpus();
  std::map<std::string, std::vector<uint32_t>> groups;
  for (uint32_t rank = 0; rank < network.ranks; ++rank) {
    const TopologyNode& node = network.topology.nodes[gpus[rank]];
    groups["rank " + std::to_string(rank)] = {rank};
    groups["host " + node.host].push_back(rank);
    groups["pod " + node.pod].push_back(rank);
  }
  Cut worst;
  for (const auto& [name, group] : groups) {
    const size_t others = network.ranks - group.size();
    if (others == 0) continue;
    const double data = double(group.size()) * double(others) / network.ranks;
    const double rate = std::min(rate_between(network, group, false), rate_between(network, group, true));
    if (data / rate > worst.ns_per_byte) worst = {data / rate, group};
  }
  return worst;
}

Cut worst_cut_of_allreduce(const Network& network) {
  // The whole message crosses every cut in both directions.
  Cut worst{.ns_per_byte = 1e-9, .ranks = {}};
  for (uint32_t root = 0; root < targets_of(network); ++root) {
    Demand from_root{std::vector<double>(network.ranks, 0)};
    from_root.weights[root] = 1;
    const Cuts cuts(network, from_root);
    for (uint32_t target = 0; target < targets_of(network); ++target)
      if (target != root) cuts.raise(target, worst);
  }
  const double rate = std::min(rate_of_all(network, true), rate_of_all(network, false));
  const double together = 2.0 * (network.ranks - 1) / rate;
  if (together > worst.ns_per_byte) {
    worst.ns_per_byte = together;
    worst.ranks.clear();
    for (uint32_t rank = 0; rank < network.ranks; ++rank) worst.ranks.push_back(rank);
  }
  return worst;
}

std::string words_of(const Network& network, const Cut& cut) {
  const std::vector<uint32_t> gpus = network.topology.gpus();
  if (cut.ranks.size() == gpus.size()) return "the links of all GPUs together";
  std::string names;
  for (size_t at = 0; at < cut.ranks.size(); ++at) {
    if (at == 8) return names + fmt::format(" and {} more", cut.ranks.size() - at);
    if (at) names += at + 1 == cut.ranks.size() ? " and " : ", ";
    names += network.topology.nodes[gpus[cut.ranks[at]]].name;
  }
  return "the links around " + names;
}

}  // namespace chorale::synthesis
