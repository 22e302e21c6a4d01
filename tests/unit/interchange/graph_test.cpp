// These tests make the graphs of all shipped plans, and of small plans whose graphs can be seen at a glance.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "chorale/interchange.hpp"
#include "chorale/usage_error.hpp"
#include "tests/unit/shipped_plans.hpp"
#include "tests/unit/simulation/made_up.hpp"

namespace chorale {
namespace {

using Kind = GraphNode::Kind;

/// Says when the nodes of a graph end if each message takes `hop` and nothing else takes time. A node that
/// never begins is left out.
struct Replay {
  Replay(const MessageGraph& graph, double hop) {
    using Key = std::tuple<uint32_t, uint32_t, uint32_t>;  // sender, receiver, tag
    std::map<Key, double> sent;
    std::vector<std::vector<double>> ends(graph.ranks.size());
    for (size_t rank = 0; rank < graph.ranks.size(); ++rank) {
      ends[rank].assign(graph.ranks[rank].size(), -1);
      nodes += graph.ranks[rank].size();
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
        for (size_t id = 0; id < graph.ranks[rank].size(); ++id) {
          const GraphNode& node = graph.ranks[rank][id];
          if (ends[rank][id] >= 0) continue;
          double begin = 0;
          bool ready = true;
          for (const uint32_t before : node.after) {
            ready = ready && ends[rank][before] >= 0;
            begin = std::max(begin, ends[rank][before]);
          }
          if (!ready) continue;
          if (node.kind == Kind::send) {
            EXPECT_TRUE(sent.emplace(Key{rank, node.peer, node.tag}, begin).second);
          }
          if (node.kind == Kind::receive) {
            const auto of = sent.find({node.peer, rank, node.tag});
            if (of == sent.end()) continue;
            begin = std::max(begin, of->second + hop);
            received += 1;
          }
          ends[rank][id] = begin;
          end = std::max(end, begin);
          ++ended;
          moved = true;
        }
      }
    }
    EXPECT_EQ(sent.size(), received);
  }
  size_t nodes = 0, ended = 0, received = 0;
  double end = 0;
};

Machine only_hops(double hop) {
  Machine machine = nothing_takes_time();
  machine.signal_ns = machine.packet_ns = hop;
  machine.remote_read_ns = 2 * hop;
  return machine;
}

/// Returns the graph as GOAL has it.
MessageGraph without_names(MessageGraph graph) {
  graph.plan.clear();
  for (std::vector<GraphNode>& nodes : graph.ranks) {
    for (GraphNode& node : nodes) {
      node.name.clear();
      node.signal = false;
      node.operations = 0;
      if (node.kind == Kind::work) node.bytes = 0;
    }
  }
  return graph;
}

MessageGraph through_chakra(const MessageGraph& graph) {
  std::vector<std::string> traces;
  for (uint32_t rank = 0; rank < graph.ranks.size(); ++rank) traces.push_back(write_chakra(graph, rank));
  return read_chakra(traces);
}

TEST(MessageGraph, OfShippedPlansHasTheTrafficAndTheOrderOfTheSimulator) {
  constexpr double hop = 1000;
  size_t plans = 0;
  for (const std::string& name : test::shipped_plans()) {
    SCOPED_TRACE(name);
    const Plan plan = load(name);
    const SimulatedCall call{.bytes = 1 << 20, .dtype = DType::bf16};
    const MessageGraph graph = message_graph(plan, call);
    const Simulation simulated = simulate(plan, call, only_hops(hop));
    std::vector<uint64_t> out(plan.ranks()), in(plan.ranks()), messages(plan.ranks());
    for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
      for (const GraphNode& node : graph.ranks[rank]) {
        if (node.kind == Kind::work || node.signal) continue;
        (node.kind == Kind::send ? out : in)[rank] += node.bytes;
        ++messages[rank];
      }
    }
    for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
      // Packets of 120 bytes and encoded blocks are cut: each message may be half a byte off.
      EXPECT_NEAR(double(out[rank]), double(simulated.links[rank].bytes_out), double(messages[rank]) / 2);
      EXPECT_NEAR(double(in[rank]), double(simulated.links[rank].bytes_in), double(messages[rank]) / 2);
    }
    const Replay replay(graph, hop);
    EXPECT_EQ(replay.ended, replay.nodes);
    EXPECT_NEAR(replay.end, simulated.ns - simulated.launch_ns, 1);
    EXPECT_EQ(through_chakra(graph), graph);
    EXPECT_EQ(read_goal(write_goal(graph)), without_names(graph));
    ++plans;
  }
  EXPECT_GT(plans, 200u);
}

}  // namespace
}  // namespace chorale
