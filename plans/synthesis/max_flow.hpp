#pragma once
/// \file
/// MaxFlow finds the largest flow between two nodes of a graph with whole capacities, by Boost.Graph.

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace chorale::synthesis {

class MaxFlow {
 public:
  explicit MaxFlow(size_t nodes) : graph_(nodes) {}

  void arc(size_t from, size_t to, int64_t capacity) {
    const Edge there = boost::add_edge(from, to, graph_).first,
               back = boost::add_edge(to, from, graph_).first;
    graph_[there] = {capacity, 0, back};
    graph_[back] = {0, 0, there};
  }

  int64_t between(size_t source, size_t sink) {
    sink_ = sink;
    return boost::push_relabel_max_flow(graph_, source, sink,
                                        boost::capacity_map(boost::get(&Arc::capacity, graph_))
                                            .residual_capacity_map(boost::get(&Arc::residual, graph_))
                                            .reverse_edge_map(boost::get(&Arc::reverse, graph_))
                                            .vertex_index_map(boost::get(boost::vertex_index, graph_)));
  }

  /// Returns after between() whether each node is on the source's side of a smallest cut.
  std::vector<bool> source_side() const {
    // Nodes from which more could flow to the sink are on its side.
    std::vector<bool> source(boost::num_vertices(graph_), true);
    std::vector<size_t> next{sink_};
    source[sink_] = false;
    while (!next.empty()) {
      const size_t at = next.back();
      next.pop_back();
      for (auto [edge, end] = boost::out_edges(at, graph_); edge != end; ++edge) {
        const size_t from = boost::target(*edge, graph_);
        if (!source[from] || graph_[graph_[*edge].reverse].residual == 0) continue;
        source[from] = false;
        next.push_back(from);
      }
    }
    return source;
  }

 private:
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Edge = Traits::edge_descriptor;
  struct Arc {
    int64_t capacity = 0, residual = 0;
    Edge reverse;
  };
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Arc>;

  Graph graph_;
  size_t sink_ = 0;
};

}  // namespace chorale::synthesis
