#include "rates.hpp"

#include <algorithm>
#include <chrono>

#include "chorale/splitmix64.hpp"
#include "linear_program.hpp"

namespace chorale::synthesis {
namespace {

/// Amounts below this part of the whole are errors of the solver.
constexpr double least_amount = 1e-7;

/// Adds for each link the constraint that its data takes at most the time of `time`.
class LinkRows {
 public:
  LinkRows(LinearProgram& program, const Network& network) : network_(network) {
    for (size_t link = 0; link < network.gb_s.size(); ++link)
      rows_.push_back(program.row(-LinearProgram::infinity, 0));
  }

  /// Adds the factors of data over a connection.
  void carry(uint32_t connection, std::vector<std::pair<int, double>>& factors) const {
    for (const uint32_t link : network_.connections[connection].links)
      factors.emplace_back(rows_[link], 1 / network_.gb_s[link]);
  }

  /// Adds the variable that is the time, and returns it.
  int time(LinearProgram& program) const {
    std::vector<std::pair<int, double>> factors;
    for (const int row : rows_) factors.emplace_back(row, -1);
    return program.column(1, factors);
  }

 private:
  const Network& network_;
  std::vector<int> rows_;
};

/// Tells how many seconds of a time limit are left.
class Deadline {
 public:
  explicit Deadline(double seconds) : end_(Clock::now() + std::chrono::duration<double>(seconds)) {}
  double left() const { return std::chrono::duration<double>(end_ - Clock::now()).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  const std::chrono::time_point<Clock, std::chrono::duration<double>> end_;
};

/// Makes small costs of connections, so that of many best solutions one with few connections is found. Longer
/// routes cost more.
class Preferences {
 public:
  Preferences(const Network& network, uint64_t seed) : network_(network), draw_(seed) {
    for (const double rate : network.gb_s) fastest_ = std::max(fastest_, rate);
  }

  /// Returns a number from 0 to 1.
  double chance() { return double(draw_() >> 11) / double(uint64_t{1} << 53); }

  double next(uint32_t connection) {
    const Connection& one = network_.connections[connection];
    return 1e-4 / fastest_ / network_.ranks * (double(one.links.size()) + (one.port ? 7 : 3) + chance());
  }

 private:
  const Network& network_;
  SplitMix64 draw_;
  double fastest_ = 0;
};

/// Adds the variables and constraints of one stage. For each target there is a flow that brings it the parts
/// of all other ranks, and a connection carries as much as the largest of these flows: by Edmonds' theorem,
/// trees need no more.
class TreeStage {
 public:
  TreeStage(LinearProgram& program, const Network& network, Way way, const std::vector<double>& weights,
            Preferences& preferences)
      : links_(program, network), time(links_.time(program)) {
    const uint32_t ranks = network.ranks;
    balance.resize(ranks, std::vector<int>(ranks, -1));
    for (uint32_t target = 0; target < ranks; ++target) {
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const double weight = weights.empty() ? 0 : weights[rank];
        if (rank != target) balance[target][rank] = program.row(weight, weight);
      }
    }
    for (uint32_t at = 0; at < network.connections.size(); ++at) {
      const Connection& one = network.connections[at];
      const uint32_t from = one.near(way), to = one.far(way);
      std::vector<std::pair<int, double>> factors;
      links_.carry(at, factors);
      for (uint32_t target = 0; target < ranks; ++target) {
        if (from == target) continue;  // nothing has to leave the target
        const int share = program.row(-LinearProgram::infinity, 0);
        std::vector<std::pair<int, double>> flow{{share, 1}, {balance[target][from], 1}};
        if (to != target) flow.emplace_back(balance[target][to], -1);
        program.column(0, flow);
        factors.emplace_back(share, -1);
      }
      carried.push_back(program.column(preferences.next(at), factors));
    }
  }

 private:
  const LinkRows links_;

 public:
  const int time;
  std::vector<std::vector<int>> balance;  ///< by target and rank: constraints
  std::vector<int> carried;               ///< by connection
};

/// Solves the program again and again without more time, and lets each connection cost more the less it
/// carries. Those that carry little then fall to zero, as in reweighted l1 minimisation.
void use_fewer(LinearProgram& program, const std::vector<TreeStage>& stages, Preferences& preferences,
               const Deadline& deadline, std::vector<double>& values) {
  for (int round = 0; round < 6; ++round) {
    for (const TreeStage& stage : stages) {
      program.set_cost(stage.time, 0);
      for (uint32_t at = 0; at < stage.carried.size(); ++at) {
        const double carried = values[size_t(stage.carried[at])];
        program.set_cost(stage.carried[at], (1 + 0.1 * preferences.chance()) / (carried + 1e-3));
      }
    }
    std::vector<double> next = program.minimised(deadline.left());
    if (next.empty()) return;
    values = std::move(next);
  }
}

}  // namespace

std::optional<Rates> rates_of_trees(const Network& network, const std::vector<Way>& ways,
                                    const std::vector<double>& weights, bool few, uint64_t seed,
                                    double seconds) {
  LinearProgram program;
  Preferences preferences(network, seed);
  std::vector<TreeStage> stages;
  for (const Way way : ways) stages.emplace_back(program, network, way, weights, preferences);
  std::vector<int> roots;
  if (weights.empty()) {
    const int all = program.row(1, 1);
    for (uint32_t rank = 0; rank < network.ranks; ++rank) {
      std::vector<std::pair<int, double>> factors{{all, 1}};
      for (const TreeStage& stage : stages) {
        for (uint32_t target = 0; target < network.ranks; ++target)
          if (target != rank) factors.emplace_back(stage.balance[target][rank], -1);
      }
      roots.push_back(program.column(0, factors));
    }
  }
  const Deadline deadline(seconds);
  std::vector<double> values = program.minimised(deadline.left());
  if (values.empty()) return std::nullopt;
  if (few) {
    for (const TreeStage& stage : stages)
      program.set_most(stage.time, values[size_t(stage.time)] * (1 + 1e-7));
    use_fewer(program, stages, preferences, deadline, values);
  }
  Rates rates;
  rates.of_root = weights;
  for (const TreeStage& stage : stages) {
    rates.ns_per_byte += values[size_t(stage.time)];
    rates.of_connection.emplace_back();
    for (const int column : stage.carried) {
      const double amount = values[size_t(column)];
      rates.of_connection.back().push_back(amount > least_amount ? amount : 0);
    }
  }
  for (const int column : roots) rates.of_root.push_back(std::max(0.0, values[size_t(column)]));
  return rates;
}

namespace {

/// Takes paths out of the flow that begins at a rank until none is left.
void take_paths(const Network& network, uint32_t from, std::vector<double> flow, std::vector<Path>& paths) {
  for (uint32_t turn = 1; turn < network.ranks; ++turn) {  // no two ranks begin with the same receiver
    const uint32_t to = (from + turn) % network.ranks;
    double left = 1.0 / network.ranks;
    while (left > least_amount) {
      // Finds the path with the fewest connections, because each is a hop.
      std::vector<int64_t> by(network.ranks, -1);
      std::vector<uint32_t> next{from};
      for (size_t at = 0; at < next.size() && by[to] < 0; ++at) {
        for (uint32_t one = 0; one < network.connections.size(); ++one) {
          const Connection& connection = network.connections[one];
          if (connection.from != next[at] || connection.to == from || by[connection.to] >= 0) continue;
          if (flow[one] <= least_amount) continue;
          by[connection.to] = one;
          next.push_back(connection.to);
        }
      }
      if (by[to] < 0) break;  // only errors of the solver are left
      Path path{from, to, left, {}};
      for (uint32_t at = to; at != from; at = network.connections[path.connections.back()].from) {
        path.connections.push_back(uint32_t(by[at]));
        path.amount = std::min(path.amount, flow[path.connections.back()]);
      }
      std::reverse(path.connections.begin(), path.connections.end());
      for (const uint32_t one : path.connections) flow[one] -= path.amount;
      left -= path.amount;
      paths.push_back(std::move(path));
    }
  }
}

}  // namespace

std::optional<AllToAllRates> rates_of_alltoall(const Network& network, uint64_t seed, double seconds) {
  const auto ranks = network.ranks;
  LinearProgram program;
  const LinkRows links(program, network);
  Preferences preferences(network, seed);
  const double each = 1.0 / ranks;
  std::vector<std::vector<int>> balance(ranks, std::vector<int>(ranks, -1));  // by sender and rank
  for (uint32_t sender = 0; sender < ranks; ++sender) {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      if (rank != sender) balance[sender][rank] = program.row(each, each);
  }
  const int time = links.time(program);
  std::vector<std::vector<int>> carried(ranks);
  for (uint32_t sender = 0; sender < ranks; ++sender) {
    for (uint32_t at = 0; at < network.connections.size(); ++at) {
      const Connection& one = network.connections[at];
      std::vector<std::pair<int, double>> factors;
      if (one.to != sender) {
        links.carry(at, factors);
        factors.emplace_back(balance[sender][one.to], 1);
        if (one.from != sender) factors.emplace_back(balance[sender][one.from], -1);
      }
      carried[sender].push_back(program.column(preferences.next(at), factors));
    }
  }
  const std::vector<double> values = program.minimised(seconds);
  if (values.empty()) return std::nullopt;
  AllToAllRates rates;
  rates.ns_per_byte = values[size_t(time)];
  for (uint32_t sender = 0; sender < ranks; ++sender) {
    std::vector<double> flow;
    for (const int column : carried[sender]) flow.push_back(values[size_t(column)]);
    take_paths(network, sender, std::move(flow), rates.paths);
  }
  return rates;
}

}  // namespace chorale::synthesis
