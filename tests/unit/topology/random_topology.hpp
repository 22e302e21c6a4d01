/// \file
/// Makes connected topologies of all shapes from a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "chorale/splitmix64.hpp"
#include "chorale/topology.hpp"

namespace chorale::test {

/// Returns a topology in which each GPU has a route to each other one. Each GPU is behind one or two
/// switches, which form a tree with more links between them. Some GPUs also have direct links. Rates differ
/// by link and direction.
inline Topology random_topology(uint32_t gpus, uint64_t seed) {
  SplitMix64 draw(seed);
  const auto below = [&](uint64_t end) { return draw() % end; };
  Topology topology;
  topology.name = "random:" + std::to_string(gpus) + "/" + std::to_string(seed);
  for (uint32_t gpu = 0; gpu < gpus; ++gpu)
    topology.nodes.push_back({TopologyNode::Kind::gpu, "gpu" + std::to_string(gpu), "host0", "", ""});
  const uint32_t switches = uint32_t(1 + below(std::max(1u, gpus / 2)));
  for (uint32_t at = 0; at < switches; ++at)
    topology.nodes.push_back({TopologyNode::Kind::switch_, "switch" + std::to_string(at), "host0", "", ""});
  std::set<std::pair<uint32_t, uint32_t>> linked;
  const auto link = [&](uint32_t one, uint32_t other) {
    if (one == other || !linked.emplace(std::minmax(one, other)).second) return;
    const double latency_ns = double(100 * below(2));
    topology.links.push_back({one, other, double(25 << below(4)), latency_ns});
    topology.links.push_back({other, one, double(25 << below(4)), latency_ns});
  };
  for (uint32_t at = 1; at < switches; ++at) link(gpus + at, gpus + uint32_t(below(at)));
  for (uint32_t gpu = 0; gpu < gpus; ++gpu) {
    link(gpu, gpus + uint32_t(below(switches)));
    if (below(3) == 0) link(gpu, gpus + uint32_t(below(switches)));
    if (below(3) == 0) link(gpu, uint32_t(below(gpus)));
  }
  for (uint32_t more = uint32_t(below(switches)); more > 0; --more)
    link(gpus + uint32_t(below(switches)), gpus + uint32_t(below(switches)));
  return topology;
}

}  // namespace chorale::test
