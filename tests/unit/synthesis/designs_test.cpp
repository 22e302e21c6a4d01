// These check trees, orders and programs of random topologies.

#include "plans/synthesis/designs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "chorale/compile.hpp"
#include "networks.hpp"
#include "tests/unit/topology/random_topology.hpp"

namespace chorale {
namespace {

using namespace synthesis;
using test::Made;

constexpr const char* collectives[] = {"allgather", "allreduce", "reducescatter",
                                       "alltoall",  "broadcast", "reduce"};

Choice solved_by(uint64_t seed) { return seed % 2 != 0 ? Choice::few : Choice::many; }

/// Calls f(stage, up) for the stages of a design.
template <class F>
void each_stage(const Design& design, const F& f) {
  if (design.up.used()) f(design.up, true);
  if (design.down.used()) f(design.down, false);
}

std::string place(const char* collective, uint64_t seed) {
  return std::string(collective) + ", seed " + std::to_string(seed);
}

TEST(Trees, ReachAllRanks) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Made made(test::random_topology(uint32_t(2 + seed % 6), seed));
    const uint32_t ranks = made.network->ranks;
    for (const char* collective : collectives) {
      if (collective == std::string("alltoall")) continue;
      const Designer designer(*made.network, collective_info(collective), uint32_t(seed % ranks),
                              solved_by(seed), seed, 60);
      for (const int64_t chunks : {1, 3, 8}) {
        const auto design = designer.design(chunks);
        ASSERT_TRUE(design) << place(collective, seed);
        each_stage(*design, [&](const Stage& stage, bool up) {
          int64_t all = 0;
          for (const Tree& tree : stage.trees) {
            all += tree.chunks;
            for (uint32_t rank = 0; rank < ranks; ++rank) {
              // Each way ends at the root, so there is no circle.
              uint32_t at = rank;
              for (uint32_t hop = 0; at != tree.root && hop < ranks; ++hop) {
                ASSERT_NE(tree.over[at], no_connection) << place(collective, seed);
                const Connection& one = made.network->connections[tree.over[at]];
                ASSERT_EQ(up ? one.from : one.to, at);
                at = up ? one.to : one.from;
              }
              ASSERT_EQ(at, tree.root) << place(collective, seed);
            }
          }
          const bool one_root = collective == std::string("broadcast") || collective == std::string("reduce");
          EXPECT_EQ(all, one_root ? chunks : chunks * ranks) << place(collective, seed);
          EXPECT_EQ(stage.pieces.size(), size_t(all));
        });
      }
    }
  }
}

/// Returns by rank of a tree the rank before it, and the rank itself for the root.
std::vector<uint32_t> ranks_before(const Network& network, const Tree& tree, Way way) {
  std::vector<uint32_t> before;
  for (uint32_t rank = 0; rank < network.ranks; ++rank)
    before.push_back(rank == tree.root ? rank : network.connections[tree.over[rank]].near(way));
  return before;
}

TEST(Rails, OfAllRanksStayOnTheirRail) {
  const Made made(load_topology("hosts:3x2/2"));
  for (const Way way : {Way::down, Way::up}) {
    const std::vector<Tree> trees = trees_over_rails(*made.network, std::nullopt, way);
    ASSERT_EQ(trees.size(), 6u);
    EXPECT_EQ(ranks_before(*made.network, trees[3], way), (std::vector<uint32_t>{1, 3, 3, 3, 5, 3}));
  }
}

TEST(Rails, OfOneRootGoFromHostToHost) {
  const Made made(load_topology("hosts:3x3/3"));
  for (const Way way : {Way::down, Way::up}) {
    const std::vector<Tree> trees = trees_over_rails(*made.network, 4, way);
    ASSERT_EQ(trees.size(), 2u);
    EXPECT_EQ(ranks_before(*made.network, trees[0], way), (std::vector<uint32_t>{6, 0, 0, 4, 4, 3, 3, 6, 6}));
    EXPECT_EQ(ranks_before(*made.network, trees[1], way), (std::vector<uint32_t>{2, 2, 8, 5, 4, 4, 8, 8, 5}));
  }
  const Made alone(load_topology("hosts:3x1/1"));
  const std::vector<Tree> trees = trees_over_rails(*alone.network, 1, Way::down);
  ASSERT_EQ(trees.size(), 1u);
  EXPECT_EQ(ranks_before(*alone.network, trees[0], Way::down), (std::vector<uint32_t>{2, 1, 1}));
}

// All GPUs share a NIC here, so that only their places tell rails apart.
TEST(Rails, AreThoseOfTheSamePlace) {
  const Made made(load_topology("hosts:2x3/1"));
  const std::vector<Tree> trees = trees_over_rails(*made.network, std::nullopt, Way::down);
  ASSERT_EQ(trees.size(), 6u);
  EXPECT_EQ(ranks_before(*made.network, trees[2], Way::down), (std::vector<uint32_t>{2, 2, 2, 5, 5, 2}));
}

TEST(Rails, HaveABusiestLink) {
  const Made made(load_topology("switch:4"));
  const double gb_s = made.network->gb_s.front();
  const auto least = [&](const char* collective) {
    return Designer(*made.network, collective_info(collective), 0, Choice::rails, 1, 60).least_ns_per_byte();
  };
  EXPECT_NEAR(least("allgather"), 3.0 / 4 / gb_s, 1e-9);
  EXPECT_NEAR(least("allreduce"), 6.0 / 4 / gb_s, 1e-9);
  EXPECT_NEAR(least("alltoall"), 3.0 / 4 / gb_s, 1e-9);
  EXPECT_NEAR(least("broadcast"), 1 / gb_s, 1e-9);  // the root sends each part once
}

TEST(Rails, NeedAllTheirConnections) {
  const Made made(load_topology("ring:4"));
  EXPECT_TRUE(trees_over_rails(*made.network, std::nullopt, Way::down).empty());
  for (const char* collective : collectives)
    EXPECT_FALSE(Designer(*made.network, collective_info(collective), 0, Choice::rails, 1, 60).solved());
}

// No linear program is solved for so many ranks.
TEST(Rails, ServeManyRanks) {
  const Made made(load_topology("hosts:5x8/8"));
  for (const char* collective : collectives) {
    const CollectiveInfo& info = collective_info(collective);
    EXPECT_FALSE(Designer(*made.network, info, 3, Choice::few, 1, 60).solved());
    const Designer designer(*made.network, info, 3, Choice::rails, 1, 60);
    EXPECT_TRUE(designer.design(designer.chunk_counts().front())) << collective;
    EXPECT_EQ(designer.ns_per_byte(), 0);
  }
}

// Signals are counted, so pieces that take the same two connections keep their order.
TEST(Orders, OfTwoConnectionsAgree) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Made made(test::random_topology(uint32_t(2 + seed % 6), seed));
    for (const char* collective : collectives) {
      const Designer designer(*made.network, collective_info(collective), 0, solved_by(seed), seed, 60);
      const auto design = designer.design(5);
      ASSERT_TRUE(design) << place(collective, seed);
      each_stage(*design, [&](const Stage& stage, bool) {
        std::vector<std::map<uint32_t, size_t>> places;  // by connection and piece
        size_t sent = 0;
        for (const std::vector<uint32_t>& list : stage.order.of_connection) {
          places.emplace_back();
          for (const uint32_t piece : list) places.back()[piece] = places.back().size();
          ASSERT_EQ(places.back().size(), list.size()) << "a piece takes a connection once";
          sent += list.size();
        }
        size_t wanted = 0;
        for (const Piece& piece : stage.pieces) {
          const std::vector<uint32_t>& over = stage.trees[piece.tree].over;
          wanted += size_t(
              std::count_if(over.begin(), over.end(), [](uint32_t one) { return one != no_connection; }));
        }
        EXPECT_EQ(sent, wanted) << place(collective, seed);
        for (uint32_t before = 0; before < places.size(); ++before) {
          for (uint32_t after = 0; after < places.size(); ++after) {
            if (made.network->connections[before].to != made.network->connections[after].from) continue;
            size_t last = 0;
            for (const uint32_t piece : stage.order.of_connection[before]) {
              const auto found = places[after].find(piece);
              if (found == places[after].end()) continue;
              EXPECT_GE(found->second, last) << place(collective, seed);
              last = found->second;
            }
          }
        }
      });
    }
  }
}

/// Compiles and proves the program of a design.
std::string findings_of(const Network& network, Design design, int64_t lanes, bool in_turns) {
  design.lanes = lanes;
  design.in_turns = in_turns;
  const dsl::Compiled compiled = program_of("found", network, design).compile();
  return compiled.ok() ? "" : render(compiled.plan, compiled.diagnostics);
}

TEST(Programs, AreRight) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Made made(test::random_topology(uint32_t(2 + seed % 5), seed));
    for (const char* collective : collectives) {
      const Designer designer(*made.network, collective_info(collective),
                              uint32_t(seed % made.network->ranks), solved_by(seed), seed, 60);
      const auto design = designer.design(int64_t(1 + seed % 4));
      ASSERT_TRUE(design) << place(collective, seed);
      EXPECT_EQ(findings_of(*made.network, *design, int64_t(1 + seed % 3), seed % 4 < 2), "")
          << place(collective, seed);
    }
  }
}

TEST(Programs, OfSeveralHostsAreRight) {
  for (const char* name : {"hosts:2x2/2", "hosts:2x2/1", "hosts:3x2/1"}) {
    const Made made(load_topology(name));
    for (const char* collective : collectives) {
      for (const Choice choice : {Choice::rails, Choice::few, Choice::many}) {
        const Designer designer(*made.network, collective_info(collective), 1, choice, 1, 60);
        const auto design = designer.design(2);
        ASSERT_TRUE(design);
        EXPECT_EQ(findings_of(*made.network, *design, 3, choice == Choice::few), "")
            << name << ", " << collective << ", choice " << int(choice);
      }
    }
  }
}

}  // namespace
}  // namespace chorale
