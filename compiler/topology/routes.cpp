// One search for each source gives each node a label: latency, number of links and rate of the best routes to
// it. The links that keep the label of their end are those of all best routes. A route is then found from its
// end. At each node with several such links the routes of the source take turns, from a first one that
// depends on both GPUs. So the GPUs behind a switch use all ways that lead to it, even if their numbers have
// the same remainder, as those of a rail do.

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>
#include <utility>

#include "chorale/topology.hpp"

namespace chorale {
namespace {

struct Label {
  // Latencies are whole numbers here, because sums of doubles depend on their order.
  uint64_t latency_ps = ~uint64_t{0};
  uint32_t links = 0;
  double gb_s = 0;

  bool better_than(const Label& other) const {
    return std::tuple(latency_ps, links, -gb_s) < std::tuple(other.latency_ps, other.links, -other.gb_s);
  }
  bool operator==(const Label&) const = default;

  Label over(const TopologyLink& link) const {
    return {latency_ps + uint64_t(std::llround(link.latency_ns * 1000)), links + 1,
            std::min(gb_s, link.gb_s)};
  }
};

class Search {
 public:
  explicit Search(const Topology& topology)
      : topology_(topology), labels_(topology.nodes.size()), turns_(topology.nodes.size()) {
    out_.resize(topology.nodes.size());
    best_.resize(topology.nodes.size());
    for (uint32_t link = 0; link < topology.links.size(); ++link)
      out_[topology.links[link].from].push_back(link);
  }

  void run(uint32_t source) {
    std::fill(labels_.begin(), labels_.end(), Label{});
    std::fill(turns_.begin(), turns_.end(), 0);
    for (std::vector<uint32_t>& links : best_) links.clear();
    using Entry = std::pair<Label, uint32_t>;
    const auto later = [](const Entry& left, const Entry& right) {
      return right.first.better_than(left.first);
    };
    std::priority_queue<Entry, std::vector<Entry>, decltype(later)> open(later);
    labels_[source] = {0, 0, 1e300};
    open.push({labels_[source], source});
    while (!open.empty()) {
      const auto [label, node] = open.top();
      open.pop();
      if (!(label == labels_[node])) continue;  // a better one has come
      if (node != source && topology_.nodes[node].kind == TopologyNode::Kind::gpu) continue;
      for (const uint32_t link : out_[node]) {
        const uint32_t to = topology_.links[link].to;
        const Label over = label.over(topology_.links[link]);
        if (labels_[to].better_than(over)) continue;
        if (!(labels_[to] == over)) {
          best_[to].clear();
          labels_[to] = over;
          open.push({over, to});
        }
        best_[to].push_back(link);
      }
    }
  }

  /// Appends the links from the source of the search to a GPU. `first` says which of several equal links
  /// comes first.
  void append(uint32_t to, uint32_t first, std::vector<uint32_t>& links) {
    const size_t begin = links.size();
    for (uint32_t node = to; !best_[node].empty();) {
      const std::vector<uint32_t>& best = best_[node];
      links.push_back(best[(first + turns_[node]++) % best.size()]);
      node = topology_.links[links.back()].from;
    }
    std::reverse(links.begin() + ptrdiff_t(begin), links.end());
  }

 private:
  const Topology& topology_;
  std::vector<Label> labels_;
  std::vector<uint32_t> turns_;
  std::vector<std::vector<uint32_t>> out_, best_;  // links, by the node that they leave or reach
};

}  // namespace

Routes::Routes(const Topology& topology) {
  const std::vector<uint32_t> gpus = topology.gpus();
  gpus_ = gpus.size();
  starts_.reserve(gpus_ * gpus_ + 1);
  starts_.push_back(0);
  Search search(topology);
  for (uint32_t from = 0; from < gpus_; ++from) {
    search.run(gpus[from]);
    for (uint32_t to = 0; to < gpus_; ++to) {
      if (to != from) search.append(gpus[to], from + to, links_);
      starts_.push_back(links_.size());
    }
  }
}

}  // namespace chorale
