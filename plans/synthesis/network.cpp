#include "network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "chorale/usage_error.hpp"

namespace chorale::synthesis {
namespace {

constexpr uint32_t none = ~uint32_t{0};

/// Returns the ranks that data of rank 0 reaches, or those whose data reaches rank 0.
std::vector<bool> reached(const Network& network, bool back) {
  std::vector<std::vector<uint32_t>> next_of(network.ranks);
  for (const Connection& one : network.connections) {
    if (back) {
      next_of[one.to].push_back(one.from);
    } else {
      next_of[one.from].push_back(one.to);
    }
  }
  std::vector<bool> seen(network.ranks, false);
  std::vector<uint32_t> next{0};
  seen[0] = true;
  while (!next.empty()) {
    const uint32_t at = next.back();
    next.pop_back();
    for (const uint32_t to : next_of[at]) {
      if (seen[to]) continue;
      seen[to] = true;
      next.push_back(to);
    }
  }
  return seen;
}

}  // namespace

void add_times(const Network& network, uint32_t connection, double bytes, std::vector<double>& times_ns) {
  for (const uint32_t link : network.connections[connection].links)
    times_ns[link] += bytes / network.gb_s[link];
}

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
  // The rate of a link in a topology is that of copy engines.
  const double stores = machine.link_put_gb_s / machine.link_copy_engine_gb_s;
  const double fastest =
      std::max({machine.link_put_gb_s, machine.link_get_gb_s, machine.link_copy_engine_gb_s}) /
      machine.link_copy_engine_gb_s;
  for (size_t link = 0; link < topology.links.size(); ++link) {
    network.gb_s.push_back(topology.links[link].gb_s * (stored[link] ? stores : 1));
    network.fastest_gb_s.push_back(topology.links[link].gb_s * (stored[link] ? fastest : 1));
  }
  for (const bool back : {false, true}) {
    const std::vector<bool> seen = reached(network, back);
    const auto lost = std::find(seen.begin(), seen.end(), false);
    if (lost == seen.end()) continue;
    const auto other = uint32_t(lost - seen.begin());
    const auto [from, to] = back ? std::pair{other, 0u} : std::pair{0u, other};
    throw UsageError(fmt::format("in '{}' nothing leads from {} to {}: add a link, or choose another group",
                                 topology.name, topology.nodes[gpus[from]].name,
                                 topology.nodes[gpus[to]].name));
  }
  return made;
}

}  // namespace chorale::synthesis
