#include "chorale/synthesize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "chorale/byte_count.hpp"
#include "chorale/compile.hpp"
#include "chorale/usage_error.hpp"
#include "designs.hpp"
#include "ways.hpp"

namespace chorale {
namespace {

using namespace synthesis;

using Clock = std::chrono::steady_clock;

/// Says how a design is made, so that the best can be made again.
struct Recipe {
  Choice choice = Choice::many;
  bool in_turns = false;
  int64_t level = 0, lanes = 1;  ///< level: of Designer::chunk_counts()
  auto operator<=>(const Recipe&) const = default;
};

/// Lists the choices. Rails are tried first, because their plans are regular.
constexpr Choice choices[] = {Choice::rails, Choice::few, Choice::many};
constexpr std::string_view choice_words[] = {"rails", "few", "many"};

/// A GPU runs at least this many thread blocks at once.
constexpr uint32_t most_blocks = 128;

class Search {
 public:
  Search(const SynthesisCall& call, const Machine& machine, const Topology& topology,
         const std::vector<OtherPlan>& others, const std::function<void(double, double)>& progress)
      : call_(call),
        collective_(collective_info(call.collective)),
        topology_(topology_of_group(topology, group_of(call, topology))),
        machine_(machine),
        others_(others),
        progress_(progress),
        network_(network_of(topology_, machine)) {
    machine_.topology = topology_;
    if (call.root >= network_->ranks)
      throw UsageError(
          fmt::format("the root is rank {}, but there are {} ranks", call.root, network_->ranks));
  }

  Synthesis run() {
    bound();
    for (size_t at = 0; at < others_.size() && !over(); ++at) try_other(at);
    for (const Choice choice : choices) {
      designers_.push_back(solved(choice));
      counts_.push_back(designers_.back()->chunk_counts());
      const double ns = designers_.back()->ns_per_byte() * double(call_.bytes);
      if (ns > 0) found_.class_ns = found_.class_ns > 0 ? std::min(found_.class_ns, ns) : ns;
    }
    for (const Choice choice : best_first())
      for (const bool in_turns : {false, true}) climb(choice, in_turns);
    if (std::isinf(best_ns_)) throw UsageError(nothing_found());
    finish();
    return std::move(found_);
  }

 private:
  static std::vector<uint32_t> group_of(const SynthesisCall& call, const Topology& topology) {
    const auto known = synthesized_collectives();
    if (std::find(known.begin(), known.end(), call.collective) == known.end()) {
      throw UsageError(fmt::format("'{}' cannot be synthesised: choose one of {}", call.collective,
                                   fmt::join(known, ", ")));
    }
    std::vector<uint32_t> group = call.group;
    if (group.empty()) {
      group.resize(topology.gpus().size());
      std::iota(group.begin(), group.end(), 0);
    }
    if (group.size() < 2) throw UsageError("a group has at least two GPUs");
    return group;
  }

  double passed() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }
  bool over() const { return passed() >= call_.seconds; }

  void bound() {
    const std::vector<Way> ways = ways_of(collective_);
    Demand demand{std::vector<double>(network_->ranks, 1.0 / network_->ranks), ways.front()};
    if (collective_.has_root()) {
      demand.weights.assign(network_->ranks, 0);
      demand.weights[call_.root] = 1;
    }
    const Cut cut = has_paths(collective_) ? worst_group_of_alltoall(*network_)
                    : ways.size() == 2     ? worst_cut_of_allreduce(*network_)
                                           : worst_cut(*network_, demand);
    found_.cut_ns = cut.ns_per_byte * double(call_.bytes);
    found_.cut = words_of(*network_, cut);
  }

  void try_other(size_t at) {
    const Plan& plan = others_[at].plan;
    if (plan.collective != call_.collective || plan.ranks() != network_->ranks || plan.inplace) return;
    const double ns = simulated(others_[at].name, plan);
    if (better(ns)) best_other_ = at;
  }

  /// Solves the linear program. If few connections are wanted, it takes the best of several solutions. That
  /// of an all-to-all does not ask for few.
  std::unique_ptr<Designer> solved(Choice choice) const {
    const double end = passed() + (call_.seconds - passed()) / 8;
    const uint64_t turns = choice == Choice::few && !has_paths(collective_) ? 8 : 1;
    std::unique_ptr<Designer> best;
    for (uint64_t turn = 0; turn < turns && (turn == 0 || passed() < end); ++turn) {
      auto next = std::make_unique<Designer>(*network_, collective_, call_.root, choice, call_.seed + turn,
                                             (call_.seconds - passed()) / 4);
      if (!best || !best->solved() || (next->solved() && next->connections_used() < best->connections_used()))
        best = std::move(next);
    }
    return best;
  }

  /// Returns the choices that have designs. Those whose busiest link needs clearly more time than that of
  /// another choice come last.
  std::vector<Choice> best_first() const {
    std::vector<Choice> solved;
    double least = std::numeric_limits<double>::infinity();
    for (const Choice choice : choices) {
      if (!designers_[size_t(choice)]->solved()) continue;
      solved.push_back(choice);
      least = std::min(least, designers_[size_t(choice)]->least_ns_per_byte());
    }
    std::stable_partition(solved.begin(), solved.end(), [&](Choice choice) {
      return designers_[size_t(choice)]->least_ns_per_byte() <= 1.1 * least;
    });
    return solved;
  }

  /// Looks for the best numbers of chunks and lanes, unless no plan of the choice can be the best. It begins
  /// with guesses for long and for short messages, and goes to a better neighbour as long as there is one.
  void climb(Choice choice, bool in_turns) {
    if (designers_[size_t(choice)]->least_ns_per_byte() * double(call_.bytes) >= best_ns_) return;
    const double ranks = collective_.has_root() ? 1 : network_->ranks;
    const std::vector<int64_t>& counts = counts_[size_t(choice)];
    for (const double least_bytes : {double(1 << 20), double(16 << 10)}) {
      Recipe at{choice, in_turns, 0, 1};
      const double parts = double(call_.bytes) / ranks / least_bytes;
      while (at.lanes < 16 && double(2 * at.lanes) <= parts) at.lanes *= 2;
      const int64_t highest = std::min<int64_t>(collective_.has_root() ? 6 : 3, int64_t(counts.size()) - 1);
      while (at.level < highest && double(counts[size_t(at.level + 1)] * at.lanes) <= parts) ++at.level;
      double now = time_of(at);
      for (bool moved = true; moved;) {
        moved = false;
        constexpr std::pair<int, int> neighbours[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, -1}, {-1, 1}};
        for (const auto& [level, lanes] : neighbours) {
          Recipe next = at;
          next.level += level;
          next.lanes = lanes > 0 ? at.lanes * 2 : lanes < 0 ? at.lanes / 2 : at.lanes;
          const double ns = time_of(next);
          if (!(ns < now)) continue;
          now = ns;
          at = next;
          moved = true;
          break;
        }
      }
    }
  }

  /// Returns the predicted time of a recipe; infinity if it has no plan, or there is no time left.
  double time_of(const Recipe& recipe) {
    constexpr double none = std::numeric_limits<double>::infinity();
    if (recipe.level < 0 || recipe.level >= int64_t(counts_[size_t(recipe.choice)].size())) return none;
    if (recipe.lanes < 1 || recipe.lanes > 64) return none;
    const int64_t parts = chunks(recipe) * recipe.lanes;
    const double share = double(call_.bytes) / double(parts) / (collective_.has_root() ? 1 : network_->ranks);
    if (share < 128 && parts > 1) return none;  // thread blocks would have nearly nothing to do
    if (const auto known = tried_.find(recipe); known != tried_.end()) return known->second;
    if (over()) return none;
    return tried_[recipe] = time_of_new(recipe);
  }

  int64_t chunks(const Recipe& recipe) const { return counts_[size_t(recipe.choice)][size_t(recipe.level)]; }

  double time_of_new(const Recipe& recipe) {
    constexpr double none = std::numeric_limits<double>::infinity();
    const std::optional<dsl::Program> program = program_for(recipe);
    if (!program) return none;
    CompileOptions options = program->compile_options();
    options.allow = {"deadlock", "races", "values", "replay"};  // the best one is proved
    const dsl::Compiled compiled = program->compile(options);
    if (!compiled.ok()) {
      found_.trials.push_back({name_of(recipe), 0, render(compiled.plan, compiled.diagnostics)});
      return none;
    }
    if (compiled.plan.thread_blocks() > most_blocks) return none;
    const double ns = simulated(name_of(recipe), compiled.plan);
    if (better(ns)) {
      best_recipe_ = recipe;
      best_other_.reset();
    }
    return ns;
  }

  std::optional<dsl::Program> program_for(const Recipe& recipe) {
    const Designer& designer = *designers_[size_t(recipe.choice)];
    const auto key = std::pair{recipe.choice, recipe.level};
    if (!designs_.contains(key)) designs_[key] = designer.design(chunks(recipe));
    std::optional<Design>& design = designs_[key];
    if (!design) return std::nullopt;
    design->lanes = recipe.lanes;
    design->in_turns = recipe.in_turns;
    return program_of(name_of(recipe), *network_, *design);
  }

  std::string name_of(const Recipe& recipe) const {
    return fmt::format("{}_{}{}_c{}_l{}", call_.collective, choice_words[size_t(recipe.choice)],
                       recipe.in_turns ? "_in_turns" : "", chunks(recipe), recipe.lanes);
  }

  /// Returns the predicted time of a plan, and lists it; infinity if the topology refuses it.
  double simulated(const std::string& name, const Plan& plan) {
    SynthesisTrial trial{name, 0, {}};
    try {
      trial.ns = simulate(plan, {.bytes = call_.bytes, .dtype = call_.dtype}, machine_).ns;
    } catch (const UsageError& error) {
      trial.refused = error.what();
    }
    found_.trials.push_back(trial);
    return trial.refused.empty() ? trial.ns : std::numeric_limits<double>::infinity();
  }

  /// Returns true if the time is the best so far, and keeps it.
  bool better(double ns) {
    const bool best = ns < best_ns_;
    if (best) best_ns_ = ns;
    if (progress_) progress_(std::isinf(best_ns_) ? 0 : best_ns_, std::min(1.0, passed() / call_.seconds));
    return best;
  }

  std::string nothing_found() const {
    for (const SynthesisTrial& trial : found_.trials)
      if (!trial.refused.empty()) return fmt::format("no plan for '{}': {}", topology_.name, trial.refused);
    return fmt::format("no plan for '{}' was found in {} s: allow more time", topology_.name, call_.seconds);
  }

  /// Compiles and proves the best plan.
  void finish() {
    found_.ns = best_ns_;
    if (best_other_) {
      found_.plan = others_[*best_other_].plan;
    } else {
      dsl::Program program = *program_for(*best_recipe_);
      CompileOptions options = program.compile_options();
      options.certify = true;
      dsl::Compiled compiled = std::move(program).compile(options);
      if (!compiled.ok())
        throw UsageError("the plan that was found is not right:\n" +
                         render(compiled.plan, compiled.diagnostics));
      found_.plan = std::move(compiled.plan);
    }
    std::stable_sort(found_.trials.begin(), found_.trials.end(), [](const auto& a, const auto& b) {
      return std::pair{!a.refused.empty(), a.ns} < std::pair{!b.refused.empty(), b.ns};
    });
    explain();
  }

  void explain() {
    std::string& text = found_.explanation;
    text += fmt::format("{}: {:.2f} us predicted for {} on {}\n", found_.trials.front().name, found_.ns / 1e3,
                        byte_count_text(call_.bytes), topology_.name);
    text += fmt::format("bound of all plans: {:.2f} us, because of {}\n", found_.cut_ns / 1e3, found_.cut);
    if (found_.class_ns > 0) {
      text += fmt::format("bound of trees and paths over the routes: {:.2f} us\n", found_.class_ns / 1e3);
    }
    const Simulation simulation =
        simulate(found_.plan, {.bytes = call_.bytes, .dtype = call_.dtype}, machine_);
    const std::vector<double>& busy = simulation.topology_busy_ns;
    const auto busiest = std::max_element(busy.begin(), busy.end());
    text += fmt::format("busiest link: {}, in use {:.0f} % of the time\n",
                        topology_.link_name(uint32_t(busiest - busy.begin())), 100 * *busiest / found_.ns);
    if (!best_recipe_ || best_other_) return;
    const Design& design = *designs_.at({best_recipe_->choice, best_recipe_->level});
    if (design.lanes > 1)
      text += fmt::format("each chunk is cut into {} parts, each with its own thread blocks\n", design.lanes);
    describe("added up towards", design.up, text);
    describe("sent on from", design.down, text);
  }

  /// Lists the trees of a stage: which rank sends to which.
  void describe(const std::string& what, const Stage& stage, std::string& text) const {
    constexpr size_t most = 16;
    for (size_t at = 0; at < stage.trees.size(); ++at) {
      if (at == most) {
        text += fmt::format("... and {} more\n", stage.trees.size() - at);
        return;
      }
      const Tree& tree = stage.trees[at];
      std::string steps;
      for (const uint32_t one : tree.over) {
        if (one == no_connection) continue;
        steps += fmt::format("{}{}>{}", steps.empty() ? "" : " ", network_->connections[one].from,
                             network_->connections[one].to);
      }
      text += fmt::format("{} {} {} rank {}: {}\n", tree.chunks, tree.chunks == 1 ? "chunk" : "chunks", what,
                          tree.root, steps);
    }
  }

  const SynthesisCall& call_;
  const CollectiveInfo& collective_;
  const Topology topology_;
  Machine machine_;
  const std::vector<OtherPlan>& others_;
  const std::function<void(double, double)>& progress_;
  const std::unique_ptr<Network> network_;
  const Clock::time_point begun_ = Clock::now();
  Synthesis found_;
  std::vector<std::unique_ptr<Designer>> designers_;                     // by choice
  std::vector<std::vector<int64_t>> counts_;                             // of these designers
  std::map<std::pair<Choice, int64_t>, std::optional<Design>> designs_;  // by choice and level
  std::map<Recipe, double> tried_;
  double best_ns_ = std::numeric_limits<double>::infinity();
  std::optional<Recipe> best_recipe_;
  std::optional<size_t> best_other_;
};

}  // namespace

std::span<const std::string_view> synthesized_collectives() {
  static const std::vector<std::string_view> words = [] {
    std::vector<std::string_view> found;
    for (const std::string_view word : standard_collectives)
      if (!collective_info(word).leaves_sender_open()) found.push_back(word);
    return found;
  }();
  return words;
}

Synthesis synthesize(const SynthesisCall& call, const Machine& machine, const Topology& topology,
                     const std::vector<OtherPlan>& others,
                     const std::function<void(double best_ns, double share)>& progress) {
  return Search(call, machine, topology, others, progress).run();
}

}  // namespace chorale
