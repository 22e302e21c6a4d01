#include "network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chorale/usage_error.hpp"

namespace chorale::synthesis {
namespace {

constexpr uint32_t none = ~uint32_t{0};

/// Returns the ranks that data of one rank reaches.
std::vector<bool> reached(const Network& network, uint32_t from) {
  std::vector<bool> seen(network.ranks, false);
  std::vector<uint32_t> next{from};
  seen[from] = true;
  while (!next.empty()) {
    const uint32_t at = next.back();
    next.pop_back();
    for (const Connection& one : network.connections) {
      if (one.from != at || seen[one.to]) continue;
      seen[one.to] = true;
      next.push_back(one.to);
    }
  }
  return seen;
}

}  // namespace

Topology topology_of_group(const Topology& topology, const std::vector<uint32_t>& group) {
  const std::vector<uint32_t> gpus = topology.gpus();
  std::vector<uint32_t> place(topology.nodes.size(), none);
  Topology part;
  part.name = topology.name;
  for (const uint32_t gpu : group) {
    if (gpu >= gpus.size()) {
      throw UsageError(fmt::format("the group names GPU {}, but '{}' has {} GPUs, which count from 0", gpu,
                                   topology.name, gpus.size()));
    }
    if (place[gpus[gpu]] != none) throw UsageError(fmt::format("the group names GPU {} twice", gpu));
    place[gpus[gpu]] = uint32_t(part.nodes.size());
    part.nodes.push_back(topology.nodes[gpus[gpu]]);
  }
  for (uint32_t node = 0; node < topology.nodes.size(); ++node) {
    if (topology.nodes[node].kind == TopologyNode::Kind::gpu) continue;
    place[node] = uint32_t(part.nodes.size());
    part.nodes.push_back(topology.nodes[node]);
  }
  for (TopologyLink link : topology.links) {
    link.from = place[link.from];
    link.to = place[link.to];
    if (link.from != none && link.to != none) part.links.push_back(link);
  }
  return part;
}

std::unique_ptr<Network> network_of(const Topology& topology, const Machine& machine) {
  const std::vector<uint32_t> gpus = topology.gpus();
  auto made = std::make_unique<Network>(topology);
  Network& network = *made;
  network.ranks = uint32_t(gpus.size());
  std::vector<bool> stored(topology.links.size(), false);
  for (uint32_t from = 0; from < network.ranks; ++from) {
    for (uint32_t to = 0; to < network.ranks; ++to) {
      const std::span<const uint32_t> links = network.routes.between(from, to);
      if (from == to || links.empty()) continue;
      const bool port = topology.nodes[gpus[from]].host != topology.nodes[gpus[to]].host;
      network.connections.push_back({from, to, links, port});
      for (const uint32_t link : links) stored[link] = stored[link] || !port;
    }
  }
  const double store_part = std::min(1.0, machine.link_put_gb_s / machine.link_copy_engine_gb_s);
  for (size_t link = 0; link < topology.links.size(); ++link)
    network.gb_s.push_back(topology.links[link].gb_s * (stored[link] ? store_part : 1));
  for (uint32_t from = 0; from < network.ranks; ++from) {
    const std::vector<bool> seen = reached(network, from);
    const auto lost = std::find(seen.begin(), seen.end(), false);
    if (lost == seen.end()) continue;
    const auto to = uint32_t(lost - seen.begin());
    throw UsageError(fmt::format("in '{}' nothing leads from {} to {}: add a link, or choose another group",
                                 topology.name, topology.nodes[gpus[from]].name,
                                 topology.nodes[gpus[to]].name));
  }
  return made;
}

}  // namespace chorale::synthesis
