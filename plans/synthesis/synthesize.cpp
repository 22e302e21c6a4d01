#include "chorale/synthesize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "chorale/byte_count.hpp"
#include "chorale/compile.hpp"
#include "chorale/usage_error.hpp"
#include "designs.hpp"

namespace chorale {
namespace {

using namespace synthesis;

using Clock = std::chrono::steady_clock;

constexpr std::string_view known[] = {"allgather", "allreduce",  "reducescatter",
                                      "alltoall",  "broadcast", "reduce"};

/// Holds how a design was made, so that the best can be made again.
struct Candidate {
  std::string kind;
  int64_t chunks = 0, lanes = 0;  ///< 0: one of the other plans
  size_t other = 0;
  bool in_turns = false;
};

/// A GPU runs at least this many thread blocks at once.
constexpr uint32_t most_blocks = 128;

class Search {
 public:
  Search(const SynthesisCall& call, const Machine& machine, const Topology& topology,
         const std::vector<Plan>& others, const std::function<void(double, double)>& progress)
      : call_(call), topology_(topology_of_group(topology, group_of(call, topology))), machine_(machine),
        others_(others), progress_(progress), network_(network_of(topology_, machine)) {
    machine_.topology = topology_;
    if (call.root >= network_->ranks)
      throw UsageError(fmt::format("the root is rank {}, but there are {} ranks", call.root, network_->ranks));
  }

  Synthesis run() {
    bound();
    for (size_t at = 0; at < others_.size() && !over(); ++at) try_other(at);
    for (const bool few : {true, false}) {
      const Designer designer(*network_, call_.collective, call_.root, few, call_.seed,
                              (call_.seconds - passed()) / 2);
      found_.class_ns = designer.ns_per_byte() * double(call_.bytes);
      if (designer.solved()) try_designs(designer, few ? "few" : "many");
    }
    if (!best_) throw UsageError(nothing_found());
    finish();
    return std::move(found_);
  }

 private:
  static std::vector<uint32_t> group_of(const SynthesisCall& call, const Topology& topology) {
    if (std::find(std::begin(known), std::end(known), call.collective) == std::end(known)) {
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
    Demand demand{std::vector<double>(network_->ranks, 1.0 / network_->ranks), false};
    if (call_.collective == "broadcast" || call_.collective == "reduce") {
      demand.weights.assign(network_->ranks, 0);
      demand.weights[call_.root] = 1;
    }
    demand.reversed = call_.collective == "reduce" || call_.collective == "reducescatter";
    const Cut cut = call_.collective == "alltoall"    ? worst_rank_of_alltoall(*network_)
                    : call_.collective == "allreduce" ? worst_cut_of_allreduce(*network_)
                                                      : worst_cut(*network_, demand);
    found_.cut_ns = cut.ns_per_byte * double(call_.bytes);
    found_.cut = words_of(*network_, cut);
  }

  void try_other(size_t at) {
    const Plan& plan = others_[at];
    if (plan.collective != call_.collective || plan.ranks() != network_->ranks || plan.inplace) return;
    take(plan, {"", 0, 0, at, false});
  }

  void try_designs(const Designer& designer, const std::string& kind) {
    const bool one_root = call_.collective == "broadcast" || call_.collective == "reduce";
    const std::vector<int64_t> chunk_counts = one_root ? std::vector<int64_t>{1, 4, 16, 64, 256}
                                                       : std::vector<int64_t>{1, 2, 4, 8, 16, 32};
    for (const int64_t chunks : chunk_counts) {
      if (over()) return;
      const std::optional<Design> design = designer.design(chunks);
      if (!design) continue;
      for (const int64_t lanes : {1, 2, 4, 8, 16, 32}) {
        const double share = double(call_.bytes) / double(chunks * lanes * (one_root ? 1 : network_->ranks));
        if (share < 256 && chunks * lanes > 1) break;  // thread blocks would have nearly nothing to do
        for (const bool in_turns : {false, true})
          if (!over()) try_design(*design, {kind, chunks, lanes, 0, in_turns});
      }
    }
  }

  void try_design(Design design, const Candidate& candidate) {
    design.lanes = candidate.lanes;
    design.in_turns = candidate.in_turns;
    dsl::Program program = program_of(name_of(candidate), *network_, design);
    CompileOptions options = program.compile_options();
    options.allow = {"deadlock", "races", "values", "replay"};  // the best one is proved
    dsl::Compiled compiled = std::move(program).compile(options);
    if (compiled.plan.thread_blocks() > most_blocks) return;
    if (!compiled.ok()) {
      found_.trials.push_back({name_of(candidate), 0, render(compiled.plan, compiled.diagnostics)});
      return;
    }
    if (take(compiled.plan, candidate)) best_design_ = std::move(design);
  }

  std::string name_of(const Candidate& candidate) const {
    return fmt::format("{}_{}{}_c{}_l{}", call_.collective, candidate.kind,
                       candidate.in_turns ? "_in_turns" : "", candidate.chunks, candidate.lanes);
  }

  /// Simulates a plan. Returns true if it is the best so far.
  bool take(const Plan& plan, const Candidate& candidate) {
    SynthesisTrial trial{plan.name, 0, {}};
    try {
      trial.ns = simulate(plan, {.bytes = call_.bytes, .dtype = call_.dtype}, machine_).ns;
    } catch (const UsageError& error) {
      trial.refused = error.what();
    }
    const bool better = trial.refused.empty() && (!best_ || trial.ns < found_.ns);
    if (better) {
      found_.ns = trial.ns;
      best_ = candidate;
    }
    found_.trials.push_back(std::move(trial));
    if (progress_) progress_(best_ ? found_.ns : 0, std::min(1.0, passed() / call_.seconds));
    return better;
  }

  std::string nothing_found() const {
    std::string text = fmt::format("no plan was found for '{}' in {} s", topology_.name, call_.seconds);
    for (const SynthesisTrial& trial : found_.trials)
      if (!trial.refused.empty()) return text + "; " + trial.name + ": " + trial.refused;
    return text + ": allow more time";
  }

  /// Compiles and proves the best plan.
  void finish() {
    if (best_->lanes == 0) {
      found_.plan = others_[best_->other];
    } else {
      dsl::Program program = program_of(name_of(*best_), *network_, *best_design_);
      CompileOptions options = program.compile_options();
      options.certify = true;
      dsl::Compiled compiled = std::move(program).compile(options);
      if (!compiled.ok())
        throw UsageError("the plan that was found is not right:\n" + render(compiled.plan, compiled.diagnostics));
      found_.plan = std::move(compiled.plan);
    }
    std::stable_sort(found_.trials.begin(), found_.trials.end(), [](const auto& a, const auto& b) {
      return std::pair{!a.refused.empty(), a.ns} < std::pair{!b.refused.empty(), b.ns};
    });
    explain();
  }

  void explain() {
    std::string& text = found_.explanation;
    text += fmt::format("{}: {:.2f} us predicted for {}\n", found_.plan.name, found_.ns / 1e3,
                        byte_count_text(call_.bytes));
    text += fmt::format("bound: {:.2f} us, from {}\n", found_.cut_ns / 1e3, found_.cut);
    if (found_.class_ns > 0)
      text += fmt::format("least time of trees or paths over these routes: {:.2f} us\n", found_.class_ns / 1e3);
  }

  const SynthesisCall& call_;
  const Topology topology_;
  Machine machine_;
  const std::vector<Plan>& others_;
  const std::function<void(double, double)>& progress_;
  const std::unique_ptr<Network> network_;
  const Clock::time_point begun_ = Clock::now();
  Synthesis found_;
  std::optional<Candidate> best_;
  std::optional<Design> best_design_;
};

}  // namespace

Synthesis synthesize(const SynthesisCall& call, const Machine& machine, const Topology& topology,
                     const std::vector<Plan>& others,
                     const std::function<void(double best_ns, double share)>& progress) {
  return Search(call, machine, topology, others, progress).run();
}

}  // namespace chorale
