#include "order.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace chorale::synthesis {
namespace {

class Flow {
 public:
  Flow(const Network& network, const std::vector<Tree>& trees, const std::vector<Piece>& pieces, Way way)
      : network_(network),
        trees_(trees),
        pieces_(pieces),
        way_(way),
        queues_(network.connections.size()),
        busy_(network.connections.size(), false) {
    order_.of_connection.resize(network.connections.size());
    order_.times.resize(network.connections.size());
    for (const Tree& tree : trees) {
      below_.emplace_back(network, tree, way == Way::down);
      heights_.emplace_back();
      measure(tree.root, below_.back(), heights_.back());
    }
    std::vector<uint64_t> carried(network.connections.size(), 0);
    for (const Piece& piece : pieces)
      for (const uint32_t one : trees[piece.tree].over)
        if (one != no_connection) ++carried[one];
    for (const uint64_t number : carried) turn_ns_.push_back(number ? 1.0 / double(number) : 0);
  }

  Order run(const std::vector<double>& begins) {
    order_.of_root = longest_first(begins);
    for (uint32_t rank = 0; rank < network_.ranks; ++rank) {
      for (const uint32_t piece : order_.of_root[rank]) {
        if (begins.empty()) {
          arrive(piece, rank, no_connection, 0);
        } else {
          ends_.push({begins[piece], no_connection, piece});
        }
      }
    }
    for (uint32_t one = 0; one < network_.connections.size(); ++one) begin(one, 0);
    while (!ends_.empty()) {
      const auto [time, one, piece] = ends_.top();
      ends_.pop();
      const uint32_t rank = one == no_connection ? trees_[pieces_[piece].tree].root : target(one);
      arrive(piece, rank, one, time);
      if (one != no_connection) {
        busy_[one] = false;
        begin(one, time);
      }
      for (const uint32_t next : below_[pieces_[piece].tree].at(rank)) begin(next, time);
    }
    if (way_ == Way::up) {
      for (auto& list : order_.of_connection) std::reverse(list.begin(), list.end());
      for (auto& list : order_.of_root) std::reverse(list.begin(), list.end());
      for (auto& times : order_.times) {
        std::reverse(times.begin(), times.end());
        for (double& time : times) time = -time;
      }
    }
    return std::move(order_);
  }

 private:
  struct Waiting {
    uint32_t piece;
    double since;
  };

  uint32_t target(uint32_t one) const { return network_.connections[one].far(way_); }

  uint32_t measure(uint32_t rank, const Branches& below, std::map<uint32_t, uint32_t>& heights) {
    uint32_t height = 0;
    for (const uint32_t one : below.at(rank))
      height = std::max(height, 1 + measure(target(one), below, heights));
    return heights[rank] = height;
  }

  /// Orders the pieces of each root by the time when it has them. At the same time, pieces of different trees
  /// alternate, so that all connections are busy from the beginning.
  std::vector<std::vector<uint32_t>> longest_first(const std::vector<double>& begins) const {
    std::vector<std::vector<std::tuple<double, double, int64_t, uint32_t>>> keys(network_.ranks);
    std::vector<int64_t> taken(trees_.size(), 0);
    for (uint32_t at = 0; at < pieces_.size(); ++at) {
      const uint32_t tree = pieces_[at].tree;
      const double share = double(taken[tree]++) / double(std::max<int64_t>(1, trees_[tree].chunks));
      keys[trees_[tree].root].emplace_back(begins.empty() ? 0 : begins[at], share,
                                           -int64_t(heights_[tree].at(trees_[tree].root)), at);
    }
    std::vector<std::vector<uint32_t>> order(network_.ranks);
    for (uint32_t rank = 0; rank < network_.ranks; ++rank) {
      std::sort(keys[rank].begin(), keys[rank].end());
      for (const auto& key : keys[rank]) order[rank].push_back(std::get<3>(key));
    }
    return order;
  }

  void arrive(uint32_t piece, uint32_t rank, uint32_t over, double time) {
    for (const uint32_t next : below_[pieces_[piece].tree].at(rank))
      queues_[next][over].push_back({piece, time});
  }

  /// Begins the next piece of a connection, if it is free: the one that has the longest way before it.
  void begin(uint32_t one, double time) {
    if (busy_[one]) return;
    std::deque<Waiting>* best = nullptr;
    std::tuple<int64_t, double, uint32_t> best_key;
    for (auto& [over, queue] : queues_[one]) {
      if (queue.empty()) continue;
      const Waiting& head = queue.front();
      const std::tuple<int64_t, double, uint32_t> key{
          -int64_t(heights_[pieces_[head.piece].tree].at(target(one))), head.since, head.piece};
      if (best && best_key <= key) continue;
      best = &queue;
      best_key = key;
    }
    if (!best) return;
    const uint32_t piece = best->front().piece;
    best->pop_front();
    busy_[one] = true;
    order_.of_connection[one].push_back(piece);
    order_.times[one].push_back(time);
    ends_.push({time + turn_ns_[one], one, piece});
  }

  const Network& network_;
  const std::vector<Tree>& trees_;
  const std::vector<Piece>& pieces_;
  const Way way_;
  std::vector<Branches> below_;                                  // by tree: connections to ranks below
  std::vector<std::map<uint32_t, uint32_t>> heights_;            // by tree and rank
  std::vector<std::map<uint32_t, std::deque<Waiting>>> queues_;  // by connection and the one before it
  std::vector<bool> busy_;
  std::vector<double> turn_ns_;  // by connection: the time of one piece, if all of them take 1
  using End = std::tuple<double, uint32_t, uint32_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Order order_;
};

}  // namespace

Order order_of(const Network& network, const std::vector<Tree>& trees, const std::vector<Piece>& pieces,
               const std::vector<double>& begins, Way way) {
  return Flow(network, trees, pieces, way).run(begins);
}

std::vector<double> ends_of(const Network& network, const std::vector<Tree>& trees,
                            const std::vector<Piece>& pieces, const Order& order) {
  std::vector<double> ends(pieces.size(), -1);
  for (uint32_t one = 0; one < network.connections.size(); ++one) {
    for (size_t at = 0; at < order.of_connection[one].size(); ++at) {
      const uint32_t piece = order.of_connection[one][at];
      if (trees[pieces[piece].tree].root == network.connections[one].to)
        ends[piece] = std::max(ends[piece], order.times[one][at]);
    }
  }
  // The thread block of a root adds one piece after the other.
  for (const std::vector<uint32_t>& own : order.of_root) {
    double last = -1;
    for (const uint32_t piece : own) last = ends[piece] = std::max(last + 1e-9, ends[piece]);
  }
  return ends;
}

}  // namespace chorale::synthesis
