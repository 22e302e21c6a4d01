// These compare the bounds with those of all cuts, one by one.

#include "plans/synthesis/bounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "chorale/usage_error.hpp"
#include "networks.hpp"
#include "plans/synthesis/rates.hpp"
#include "tests/unit/topology/random_topology.hpp"

namespace chorale {
namespace {

using namespace synthesis;
using test::Made;

/// Returns the worst ratio of data to rate over all sets of nodes.
double worst_of_all_cuts(const Network& network, const Demand& demand) {
  const std::vector<uint32_t> gpus = network.topology.gpus();
  const size_t nodes = network.topology.nodes.size();
  double worst = 0;
  for (uint32_t inside = 1; inside < (1u << nodes); ++inside) {
    const bool all = std::all_of(gpus.begin(), gpus.end(), [&](uint32_t gpu) { return inside >> gpu & 1; });
    if (all) continue;  // no GPU outside needs the data
    double data = 0, rate = 0;
    for (uint32_t rank = 0; rank < gpus.size(); ++rank)
      data += inside >> gpus[rank] & 1 ? demand.weights[rank] : 0;
    for (size_t at = 0; at < network.fastest_gb_s.size(); ++at) {
      const TopologyLink& link = network.topology.links[at];
      const bool up = demand.way == Way::up;
      const uint32_t from = up ? link.to : link.from, to = up ? link.from : link.to;
      if ((inside >> from & 1) && !(inside >> to & 1)) rate += network.fastest_gb_s[at];
    }
    if (rate > 0) worst = std::max(worst, data / rate);
  }
  return worst;
}

TEST(Bounds, AreTheWorstOfAllCuts) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Made made(test::random_topology(uint32_t(2 + seed % 6), seed));
    const uint32_t ranks = made.network->ranks;
    for (const Way way : {Way::down, Way::up}) {
      Demand demand{std::vector<double>(ranks, 1.0 / ranks), way};
      EXPECT_NEAR(worst_cut(*made.network, demand).ns_per_byte / worst_of_all_cuts(*made.network, demand), 1,
                  1e-6)
          << "seed " << seed;
      demand.weights.assign(ranks, 0);
      demand.weights[seed % ranks] = 1;
      EXPECT_NEAR(worst_cut(*made.network, demand).ns_per_byte / worst_of_all_cuts(*made.network, demand), 1,
                  1e-6)
          << "seed " << seed << ", one root";
    }
  }
}

TEST(Bounds, OfASwitch) {
  const Made made(load_topology("switch:8"));
  const double gb_s = made.network->fastest_gb_s.front();
  const Demand demand{std::vector<double>(8, 0.125)};
  EXPECT_NEAR(worst_cut(*made.network, demand).ns_per_byte, 7.0 / 8 / gb_s, 1e-9);
  EXPECT_NEAR(worst_group_of_alltoall(*made.network).ns_per_byte, 7.0 / 8 / gb_s, 1e-9);
  EXPECT_NEAR(worst_cut_of_allreduce(*made.network).ns_per_byte, 14.0 / 8 / gb_s, 1e-9);
  EXPECT_EQ(words_of(*made.network, worst_group_of_alltoall(*made.network)), "the links around gpu0");
}

// A solution of the searched class cannot be better than the bounds of all plans.
TEST(Rates, AreNoBetterThanTheBounds) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Made made(test::random_topology(uint32_t(2 + seed % 5), seed));
    const Network& network = *made.network;
    const Demand demand{std::vector<double>(network.ranks, 1.0 / network.ranks)};
    for (const bool few : {false, true}) {
      const auto gather = rates_of_trees(network, {Way::down}, demand.weights, few, seed, 60);
      ASSERT_TRUE(gather);
      EXPECT_GE(gather->ns_per_byte, worst_cut(network, demand).ns_per_byte * (1 - 1e-6)) << "seed " << seed;
      const auto reduce = rates_of_trees(network, {Way::up, Way::down}, {}, few, seed, 60);
      ASSERT_TRUE(reduce);
      EXPECT_GE(reduce->ns_per_byte, worst_cut_of_allreduce(network).ns_per_byte * (1 - 1e-6));
    }
    const auto all = rates_of_alltoall(network, seed, 60);
    ASSERT_TRUE(all);
    EXPECT_GE(all->ns_per_byte, worst_group_of_alltoall(network).ns_per_byte * (1 - 1e-6));
  }
}

TEST(Rates, FewConnectionsOfASwitchAreARing) {
  const Made made(load_topology("switch:8"));
  const auto rates = rates_of_trees(*made.network, {Way::down}, std::vector<double>(8, 0.125), true, 2, 60);
  ASSERT_TRUE(rates);
  EXPECT_EQ(std::count_if(rates->of_connection[0].begin(), rates->of_connection[0].end(),
                          [](double amount) { return amount > 0; }),
            8);
}

TEST(Networks, OfAGroup) {
  const Topology all = load_topology("ring:4");
  const Topology part = topology_of_group(all, {2, 1});
  EXPECT_EQ(part.nodes[part.gpus()[0]].name, "gpu2");
  EXPECT_EQ(part.links.size(), 2u);
  const auto refused = [&](const std::vector<uint32_t>& group) {
    try {
      network_of(topology_of_group(all, group), test::h200());
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_EQ(refused({1, 1}), "the group names GPU 1 twice");
  EXPECT_EQ(refused({1, 4}), "the group names GPU 4, but 'ring:4' has 4 GPUs, which count from 0");
  EXPECT_EQ(refused({0, 2}),
            "in 'ring:4' nothing leads from gpu0 to gpu2: add a link, or choose another group");
}

}  // namespace
}  // namespace chorale
