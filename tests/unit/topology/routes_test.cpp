#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "chorale/topology.hpp"
#include "tests/unit/topology/random_topology.hpp"

namespace chorale {
namespace {

/// Returns the names of the nodes on a route, for example "gpu0 nvswitch gpu1".
std::string nodes_of(const Topology& topology, const Routes& routes, uint32_t from, uint32_t to) {
  std::string names;
  for (const uint32_t link : routes.between(from, to)) {
    if (names.empty()) names = topology.nodes[topology.links[link].from].name;
    names += " " + topology.nodes[topology.links[link].to].name;
  }
  return names;
}

TEST(Routes, LeadThroughSwitchesAndNics) {
  const auto route = [](const char* name, uint32_t from, uint32_t to) {
    const Topology topology = load_topology(name);
    return nodes_of(topology, Routes(topology), from, to);
  };
  EXPECT_EQ(route("switch:4", 1, 3), "gpu1 nvswitch gpu3");
  EXPECT_EQ(route("switch:4", 1, 1), "");
  EXPECT_EQ(route("ring:4", 3, 0), "gpu3 gpu0");
  EXPECT_EQ(route("ring:4", 0, 2), "");  // GPUs do not forward
  EXPECT_EQ(route("mesh:4", 0, 2), "gpu0 gpu2");
  EXPECT_EQ(route("pcie:4", 0, 1), "gpu0 pcie0 gpu1");
  EXPECT_EQ(route("pcie:4", 0, 3), "gpu0 pcie0 bridge pcie1 gpu3");
  EXPECT_EQ(route("hosts:2x8/1", 0, 7), "host0/gpu0 host0/nvswitch host0/gpu7");
  EXPECT_EQ(route("hosts:2x8/1", 0, 15), "host0/gpu0 host0/nic0 leaf0 host1/nic0 host1/gpu7");
  EXPECT_EQ(route("hosts:2x8/4", 2, 11), "host0/gpu2 host0/nic1 leaf1 host1/nic1 host1/gpu3");
  EXPECT_EQ(route("hosts:2x8/8", 0, 15), "host0/gpu0 host0/nic0 leaf0 spine leaf7 host1/nic7 host1/gpu7");
}

Topology diamond() {
  return parse_topology(R"({"version": 1, "topology": "diamond", "nodes": [
    {"name": "a", "kind": "gpu"}, {"name": "b", "kind": "gpu"},
    {"name": "x", "kind": "switch"}, {"name": "y", "kind": "switch"}, {"name": "z", "kind": "switch"}],
    "links": [{"between": ["a", "x"], "gb_s": 10, "latency_ns": 50}, {"between": ["x", "b"], "gb_s": 10, "latency_ns": 50},
              {"between": ["a", "y"], "gb_s": 5, "latency_ns": 60}, {"between": ["y", "b"], "gb_s": 20, "latency_ns": 40},
              {"between": ["x", "z"], "gb_s": 90, "latency_ns": 20}, {"between": ["z", "b"], "gb_s": 90, "latency_ns": 30}]})",
                        "t.json");
}

TEST(Routes, HaveTheLeastLatencyThenTheFewestLinksThenTheHighestRate) {
  Topology topology = diamond();
  EXPECT_EQ(nodes_of(topology, Routes(topology), 0, 1), "a x b");
  topology.links[4].gb_s = topology.links[6].gb_s = 11;  // a to y, y to b
  EXPECT_EQ(nodes_of(topology, Routes(topology), 0, 1), "a y b");
  EXPECT_EQ(nodes_of(topology, Routes(topology), 1, 0), "b x a");
  topology.links[8].latency_ns = 19;  // x to z
  EXPECT_EQ(nodes_of(topology, Routes(topology), 0, 1), "a x z b");
}

/// Tries all routes of small topologies.
TEST(Routes, AreTheBestOfAll) {
  size_t spread = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Topology topology = test::random_topology(uint32_t(2 + seed % 7), seed);
    if (seed % 2)
      for (TopologyLink& link : topology.links) link.gb_s = 25, link.latency_ns = 0.1;
    const std::vector<uint32_t> gpus = topology.gpus();
    const Routes routes(topology);
    using Label = std::tuple<double, size_t, double>;  // latency, links and minus the rate
    for (uint32_t from = 0; from < gpus.size(); ++from) {
      std::map<uint32_t, std::vector<Label>> all;
      std::vector<bool> on_path(topology.nodes.size());
      const auto visit = [&](const auto& self, uint32_t node, Label label) -> void {
        if (node != gpus[from] && topology.nodes[node].kind == TopologyNode::Kind::gpu) {
          all[node].push_back(label);
          return;
        }
        on_path[node] = true;
        for (const TopologyLink& link : topology.links) {
          if (link.from != node || on_path[link.to]) continue;
          const auto& [latency, links, rate] = label;
          self(self, link.to, {latency + link.latency_ns, links + 1, std::max(rate, -link.gb_s)});
        }
        on_path[node] = false;
      };
      visit(visit, gpus[from], {0, 0, -1e300});
      for (uint32_t to = 0; to < gpus.size(); ++to) {
        const auto route = routes.between(from, to);
        if (from == to) {
          EXPECT_TRUE(route.empty());
          continue;
        }
        ASSERT_FALSE(route.empty());
        Label label{0, 0, -1e300};
        uint32_t node = gpus[from];
        for (const uint32_t link : route) {
          EXPECT_EQ(topology.links[link].from, node);
          node = topology.links[link].to;
          auto& [latency, links, rate] = label;
          label = {latency + topology.links[link].latency_ns, links + 1,
                   std::max(rate, -topology.links[link].gb_s)};
        }
        EXPECT_EQ(node, gpus[to]);
        std::vector<Label>& others = all[gpus[to]];
        EXPECT_EQ(label, *std::min_element(others.begin(), others.end()));
        spread += size_t(std::count(others.begin(), others.end(), label) > 1);
      }
    }
  }
  EXPECT_GT(spread, 20u);  // pairs with several best routes
}

/// Returns the largest number of routes on one link between switches, and the number of such links in use.
std::pair<size_t, size_t> load(const Topology& topology, const Routes& routes,
                               const std::vector<std::pair<uint32_t, uint32_t>>& pairs) {
  std::map<uint32_t, size_t> by_link;
  for (const auto& [from, to] : pairs)
    for (const uint32_t link : routes.between(from, to))
      if (topology.nodes[topology.links[link].from].kind == TopologyNode::Kind::switch_ &&
          topology.nodes[topology.links[link].to].kind == TopologyNode::Kind::switch_)
        ++by_link[link];
  size_t most = 0;
  for (const auto& [link, count] : by_link) most = std::max(most, count);
  return {most, by_link.size()};
}

TEST(Routes, AreSpreadOverEqualOnes) {
  const Topology tree = load_topology("fat_tree:512");
  const Routes routes(tree);
  // Each GPU sends to the one at the same place in the next pod: 32 routes leave a leaf over 8 spines.
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t gpu = 0; gpu < 512; ++gpu) pairs.emplace_back(gpu, (gpu + 256) % 512);
  EXPECT_EQ(load(tree, routes, pairs), (std::pair<size_t, size_t>{4, 2 * 16 * 8}));
  // All send to all other rails and pods.
  pairs.clear();
  for (uint32_t from = 0; from < 512; ++from)
    for (uint32_t to = 0; to < 512; ++to)
      if (from / 8 != to / 8 && (from % 8 != to % 8 || from / 256 != to / 256)) pairs.emplace_back(from, to);
  const auto [most, links] = load(tree, routes, pairs);
  EXPECT_EQ(links, 2u * 16 * 8);
  EXPECT_LE(double(most), 1.05 * double(pairs.size()) * 2 / double(links));

  // Each of four GPUs has a link to each of two planes.
  Topology planes;
  for (int gpu = 0; gpu < 4; ++gpu)
    planes.nodes.push_back({TopologyNode::Kind::gpu, "gpu" + std::to_string(gpu), "", "", ""});
  for (uint32_t plane = 4; plane < 6; ++plane) {
    planes.nodes.push_back({TopologyNode::Kind::switch_, "plane" + std::to_string(plane), "", "", ""});
    for (uint32_t gpu = 0; gpu < 4; ++gpu) {
      planes.links.push_back({gpu, plane, 1, 0});
      planes.links.push_back({plane, gpu, 1, 0});
    }
  }
  const Routes over(planes);
  for (uint32_t gpu = 0; gpu < 4; ++gpu) {
    std::set<uint32_t> out, in;
    for (uint32_t peer = 0; peer < 4; ++peer) {
      if (peer == gpu) continue;
      out.insert(over.between(gpu, peer)[0]);
      in.insert(over.between(peer, gpu)[1]);
    }
    EXPECT_EQ(out.size(), 2u) << gpu;
    EXPECT_EQ(in.size(), 2u) << gpu;
  }
}

}  // namespace
}  // namespace chorale
