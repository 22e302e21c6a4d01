#include "designs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ways.hpp"

namespace chorale::synthesis {
namespace {

/// A linear program of more ranks takes too long.
constexpr uint32_t most_solved = 32;

/// Returns whole numbers in proportion to the parts, whose sum is `whole`.
std::vector<int64_t> shares_of(const std::vector<double>& parts, int64_t whole) {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<int64_t> shares;
  std::vector<std::pair<double, size_t>> rests;
  int64_t left = whole;
  for (size_t at = 0; at < parts.size(); ++at) {
    const double exact = parts[at] / sum * double(whole);
    shares.push_back(int64_t(exact + 1e-9));
    left -= shares.back();
    rests.emplace_back(double(shares.back()) - exact, at);
  }
  std::sort(rests.begin(), rests.end());
  for (size_t at = 0; left > 0; at = (at + 1) % rests.size(), --left) ++shares[rests[at].second];
  return shares;
}

std::vector<Piece> pieces_of(const std::vector<Tree>& trees, uint32_t ranks) {
  std::vector<int64_t> next(ranks, 0);
  std::vector<Piece> pieces;
  for (uint32_t tree = 0; tree < trees.size(); ++tree)
    for (int64_t chunk = 0; chunk < trees[tree].chunks; ++chunk)
      pieces.push_back({tree, next[trees[tree].root]++});
  return pieces;
}

/// Returns for each piece of a stage when the stage before has its chunk.
std::vector<double> begins_of(const Network& network, const Stage& before, const Stage& stage) {
  const std::vector<double> ends = ends_of(network, before.trees, before.pieces, before.order);
  std::map<std::pair<uint32_t, int64_t>, double> by_chunk;  // by root and chunk
  for (size_t at = 0; at < before.pieces.size(); ++at)
    by_chunk[{before.trees[before.pieces[at].tree].root, before.pieces[at].chunk}] = ends[at];
  std::vector<double> begins;
  for (const Piece& piece : stage.pieces)
    begins.push_back(by_chunk.at({stage.trees[piece.tree].root, piece.chunk}));
  return begins;
}

}  // namespace

Designer::Designer(const Network& network, const CollectiveInfo& collective, uint32_t root, Choice choice,
                   uint64_t seed, double seconds)
    : network_(network), collective_(collective), root_(root) {
  const bool solves = choice != Choice::rails && network.ranks <= most_solved;
  if (has_paths(collective)) {
    if (choice == Choice::rails) paths_ = alltoall_over_rails(network);
    if (solves) paths_ = rates_of_alltoall(network, seed, seconds);
    if (solves && paths_) ns_per_byte_ = paths_->ns_per_byte;
    return;
  }
  stages_ = ways_of(collective);
  if (choice == Choice::rails) {
    const std::optional<uint32_t> only = collective.has_root() ? std::optional<uint32_t>(root) : std::nullopt;
    for (const Way way : stages_) {
      over_rails_.push_back(trees_over_rails(network, only, way));
      if (over_rails_.back().empty()) {
        over_rails_.clear();
        return;
      }
    }
  }
  if (!solves) return;
  std::vector<double> weights(network.ranks, collective.has_root() ? 0 : 1.0 / network.ranks);
  if (collective.has_root()) weights[root] = 1;
  const bool few = choice == Choice::few;
  trees_ = rates_of_trees(network, stages_, weights, few, seed, seconds);
  if (trees_) ns_per_byte_ = trees_->ns_per_byte;
  if (stages_.size() == 1) return;
  // Any rank may add up any part. Equal parts keep all links busy in both halves, so they stay if they are as
  // good.
  std::optional<Rates> any = rates_of_trees(network, stages_, {}, few, seed, seconds);
  ns_per_byte_ = any ? any->ns_per_byte : 0;
  if (any && (!trees_ || any->ns_per_byte < trees_->ns_per_byte * (1 - 1e-4))) trees_ = std::move(any);
}

int64_t Designer::whole(int64_t chunks) const {
  return collective_.has_root() ? chunks : chunks * network_.ranks;
}

double Designer::least_ns_per_byte() const {
  if (trees_) return trees_->ns_per_byte;
  if (paths_) return paths_->ns_per_byte;
  double all = 0;
  for (const std::vector<Tree>& trees : over_rails_) {
    std::vector<double> load(network_.gb_s.size(), 0);
    for (const Tree& tree : trees) {
      for (const uint32_t one : tree.over)
        if (one != no_connection) add_times(network_, one, 1.0 / double(trees.size()), load);
    }
    all += *std::max_element(load.begin(), load.end());
  }
  return all;
}

size_t Designer::connections_used() const {
  size_t used = 0;
  if (trees_) {
    for (const std::vector<double>& stage : trees_->of_connection)
      used += size_t(std::count_if(stage.begin(), stage.end(), [](double amount) { return amount > 0; }));
  }
  return used;
}

/// Returns by connection how many chunks it may carry in a stage. Whole numbers are rounded up, so that there
/// are trees.
std::vector<int64_t> Designer::capacities(size_t stage, int64_t chunks, int64_t extra) const {
  std::vector<int64_t> capacities;
  for (const double amount : trees_->of_connection[stage]) {
    const double exact = amount * double(whole(chunks));
    capacities.push_back(amount > 0 ? int64_t(std::ceil(exact - 1e-3)) + extra : 0);
  }
  return capacities;
}

/// Returns the time of the busiest link, relative to what the busiest link needs without rounding.
double Designer::worst_load(int64_t chunks) const {
  double worst = 0;
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    const std::vector<int64_t> carried = capacities(stage, chunks, 0);
    std::vector<double> load(network_.gb_s.size(), 0), exact(load);
    for (uint32_t one = 0; one < carried.size(); ++one) {
      add_times(network_, one, double(carried[one]) / double(whole(chunks)), load);
      add_times(network_, one, trees_->of_connection[stage][one], exact);
    }
    worst = std::max(
        worst, *std::max_element(load.begin(), load.end()) / *std::max_element(exact.begin(), exact.end()));
  }
  return worst;
}

std::vector<int64_t> Designer::chunk_counts() const {
  const int64_t most = collective_.has_root() ? 1024 : 128;
  std::vector<int64_t> counts;
  if (!over_rails_.empty()) {
    const int64_t trees = collective_.has_root() ? int64_t(over_rails_.front().size()) : 1;
    for (int64_t chunks = trees; chunks <= std::max(most, trees); chunks *= 2) counts.push_back(chunks);
    return counts;
  }
  for (int64_t least = 1; least <= most; least *= 2) {
    int64_t best = least;
    double load = trees_ ? worst_load(least) : 1;
    for (int64_t chunks = least + 1; trees_ && chunks < 2 * least && chunks <= most; ++chunks) {
      const double other = worst_load(chunks);
      if (other < load - 1e-3) {
        load = other;
        best = chunks;
      }
    }
    counts.push_back(best);
  }
  return counts;
}

std::optional<Design> Designer::design(int64_t chunks) const {
  if (trees_ || !over_rails_.empty()) return of_trees(chunks);
  if (paths_) return of_paths(chunks);
  return std::nullopt;
}

/// Returns the trees of a stage, or none if the solution has none with that many chunks.
std::vector<Tree> Designer::trees_of(size_t stage, int64_t chunks) const {
  std::vector<Tree> trees;
  if (!over_rails_.empty()) {
    trees = over_rails_[stage];
    const std::vector<int64_t> shares = shares_of(std::vector<double>(trees.size(), 1), whole(chunks));
    for (size_t at = 0; at < trees.size(); ++at) trees[at].chunks = shares[at];
    std::erase_if(trees, [](const Tree& tree) { return tree.chunks == 0; });
    return trees;
  }
  const std::vector<int64_t> roots = shares_of(trees_->of_root, whole(chunks));
  // Roots' parts are rounded too, so a little more may be needed.
  for (int64_t extra = 0; extra < 4 && trees.empty(); ++extra)
    trees = pack_trees(network_, capacities(stage, chunks, extra), roots, stages_[stage]);
  return trees;
}

std::optional<Design> Designer::of_trees(int64_t chunks) const {
  Design design{.collective = std::string(collective_.word),
                .root = root_,
                .chunks = chunks,
                .up = {},
                .down = {},
                .ends = {}};
  for (size_t at = 0; at < stages_.size(); ++at) {
    const Way way = stages_[at];
    Stage& stage = way == Way::up ? design.up : design.down;
    stage.trees = trees_of(at, chunks);
    if (stage.trees.empty()) return std::nullopt;
    stage.pieces = pieces_of(stage.trees, network_.ranks);
    std::vector<double> begins;
    if (at > 0) begins = begins_of(network_, design.up, stage);
    stage.order = order_of(network_, stage.trees, stage.pieces, begins, way);
  }
  return design;
}

Design Designer::of_paths(int64_t chunks) const {
  Design design{
      .collective = std::string(collective_.word), .chunks = chunks, .up = {}, .down = {}, .ends = {}};
  Stage& stage = design.down;
  for (size_t begin = 0; begin < paths_->paths.size();) {
    // The paths of one pair of ranks follow each other.
    size_t end = begin;
    std::vector<double> amounts;
    const Path& first = paths_->paths[begin];
    for (; end < paths_->paths.size() && paths_->paths[end].from == first.from &&
           paths_->paths[end].to == first.to;
         ++end)
      amounts.push_back(paths_->paths[end].amount);
    const std::vector<int64_t> shares = shares_of(amounts, chunks);
    int64_t chunk = 0;
    for (size_t at = begin; at < end; ++at) {
      if (shares[at - begin] == 0) continue;
      Tree tree{first.from, shares[at - begin], std::vector<uint32_t>(network_.ranks, no_connection)};
      for (const uint32_t one : paths_->paths[at].connections) tree.over[network_.connections[one].to] = one;
      for (int64_t one = 0; one < tree.chunks; ++one)
        stage.pieces.push_back({uint32_t(stage.trees.size()), chunk++});
      design.ends.push_back(first.to);
      stage.trees.push_back(std::move(tree));
    }
    begin = end;
  }
  stage.order = order_of(network_, stage.trees, stage.pieces, {}, Way::down);
  return design;
}

}  // namespace chorale::synthesis
