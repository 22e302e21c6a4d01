// This file runs all proofs together, with one pass over each execution that matters.
//
// Computing the memory layout costs two passes over the operations in all turns of their pipelines. Each
// launch of an execution costs one more, see races.cpp. It executes two launches, or three if scratch has two
// banks.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "chorale/collective.hpp"
#include "chorale/proof.hpp"
#include "compiler/plan/progress.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/proof/excerpts/copies.hpp"
#include "compiler/proof/excerpts/repeats.hpp"
#include "compiler/proof/order/races.hpp"
#include "compiler/proof/values/values.hpp"
#include "deadlock.hpp"
#include "decidable.hpp"

namespace chorale {
namespace proof {
namespace {

/// If there are more than max_executions orders, this many more are drawn at random. The enumeration varies
/// the last choices first, while drawn orders differ from the beginning on.
constexpr uint32_t max_drawn = 256;

/// Lists whether input and output of a rank may be one memory: all cases that the executor may choose for the
/// plan.
std::vector<bool> list_storages(const Plan& plan) {
  if (!plan.inplace) return {false};
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (!is_one_storage(plan, rank)) return {true, false};
  }
  return {true};
}

/// Passes the events of one execution on to several observers.
class Observers : public Observer {
 public:
  /// \param all  the observers; null ones are left out
  Observers(std::initializer_list<Observer*> all) : all_(all) { std::erase(all_, nullptr); }
  void begin(uint32_t rank, uint32_t launch) override {
    for (Observer* const one : all_) one->begin(rank, launch);
  }
  void end(uint32_t rank, uint32_t launch) override {
    for (Observer* const one : all_) one->end(rank, launch);
  }
  void sync(uint32_t chain) override {
    for (Observer* const one : all_) one->sync(chain);
  }
  void move(uint32_t chain, const SymbolicStep& step, std::span<const Touch> touches) override {
    for (Observer* const one : all_) one->move(chain, step, touches);
  }
  void post(uint32_t chain, const SymbolicStep& step, uint32_t counter) override {
    for (Observer* const one : all_) one->post(chain, step, counter);
  }
  void take(uint32_t chain, const SymbolicStep& step, uint32_t counter, uint64_t first, uint64_t n) override {
    for (Observer* const one : all_) one->take(chain, step, counter, first, n);
  }
  void drain(uint32_t chain, const SymbolicStep& step) override {
    for (Observer* const one : all_) one->drain(chain, step);
  }
  void arrive(uint32_t chain, uint32_t barrier) override {
    for (Observer* const one : all_) one->arrive(chain, barrier);
  }
  void leave(uint32_t chain, uint32_t barrier) override {
    for (Observer* const one : all_) one->leave(chain, barrier);
  }

 private:
  std::vector<Observer*> all_;
};

class Prover {
 public:
  Prover(const Plan& plan, const std::vector<std::string>& allow, bool facts, Banks banks = Banks::as_planned)
      : plan_(plan), allow_(allow), findings_(plan, allow), want_facts_(facts), banks_(banks) {
    facts_.entry_guarded = facts_.exit_quiescent = true;
  }

  Proof prove() {
    prove_all_messages();
    return {findings_.take(), facts_};
  }

 private:
  void prove_all_messages() {
    if (!has_fixed_skew(plan_, findings_)) return;
    const std::vector<Message> messages = list_messages(plan_);
    if (messages.empty()) return too_large("its pipelines and thread block groups have no common unit");
    const std::vector<bool> storages = list_storages(plan_);
    const double parts = double(messages.size() * storages.size());
    double part = 0;
    for (uint32_t message = 0; message < messages.size(); ++message) {
      for (const bool one_storage : storages) {
        const ProgressPart this_part(part / parts, (part + 1) / parts);
        ++part;
        findings_.setting = {message, one_storage, 1, {}};
        prove_message(messages[message], one_storage);
        if (!findings_.any()) continue;
        if (messages[message].exact) {
          findings_.add_note(
              fmt::format("found for a message whose chunks are {} x the alignment: with so few packets, "
                          "some thread blocks of a group have no share and neither send nor await packets",
                          messages[message].chunk));
        }
        return;
      }
    }
    findings_.setting = {};
    if (!findings_.wanted(ProofName::values)) return;
    if (!plan_.inplace && collective_info(plan_.collective).keeps_inputs()) check_inputs_kept();
    if (Outcome(plan_).leaves_sender_open()) check_somebody_receives();
  }

  /// Checks that some rank receives something. The program decides which rank sends to which, but it must
  /// send something.
  void check_somebody_receives() {
    const std::vector<bool> receive = receivers(plan_, true);
    if (std::find(receive.begin(), receive.end(), true) != receive.end()) return;
    findings_.add(ProofName::values, Finding::Kind::value, {},
                  "no rank receives anything: no operation writes any of the " +
                      count(plan_.ranks(), "output") + " of this " + plan_.collective,
                  "write to the output of each rank that something is sent to");
  }

  /// Checks that no input is overwritten. If the plan is not in place, the application's input must stay as
  /// it was. (A "test" promises nothing.)
  void check_inputs_kept() {
    for_each_op(plan_, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
      for_each_place(plan_, gpu, block, op,
                     [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                       if (!is_write(field.role) || buffer != BufferKind::input) return;
                       if (!findings_.news(ProofName::values, at, {}, "input")) return;
                       Finding& finding = findings_.add(
                           ProofName::values, Finding::Kind::value, at,
                           "this overwrites input[" + number(operand.index) + ":" +
                               number(operand.index + operand.size) + "] of " + rank_name(rank) +
                               ", but the plan is not in place: the application's input must stay as it is",
                           "use scratch, or the output, or make the plan one in place");
                       ProofEvent& event = finding.events.emplace_back();
                       event.at = at;
                       event.accesses = event.writes = true;
                       event.buffer_rank = rank;
                       event.buffer = buffer;
                       event.begin = operand.index;
                       event.end = operand.index + operand.size;
                     });
    });
  }

  void too_large(const std::string& what) {
    findings_.add(ProofName::decidable, Finding::Kind::undecided, {}, "this plan cannot be proved: " + what);
  }

  void prove_message(const Message& message, bool one_storage) {
    if (holds_by_copies(message, one_storage)) return;
    const Memory memory(plan_, message, one_storage, banks_);
    if (!memory.fits())
      return too_large("its pipelines take too many turns, or its operands are cut too finely");
    if (findings_.wanted(ProofName::values)) {
      const Promise promise(plan_, memory);
      if (!promise.impossible().empty()) {
        findings_.add(ProofName::values, Finding::Kind::value, {},
                      "no message can be cut into this plan's chunks: " + promise.impossible());
        return;
      }
    }
    SymbolicExecutor executor(plan_, memory);
    if (!is_decided(executor, findings_, facts_.bounded)) return;
    const Shares shares(plan_, memory);
    if (shares.packets() && findings_.wanted(ProofName::decidable)) {
      findings_.add(
          ProofName::decidable, Finding::Kind::undecided, *shares.packets(),
          "this plan cannot be proved: other operations share these packets in another way, and where "
          "slices end depends on the size of the message",
          "name the same chunks, and thread block groups of the same size, where packets are written and "
          "read");
      return;
    }
    const uint32_t launches = findings_.wanted(ProofName::replay) ? memory.banks() + 1 : 1;
    facts_.launches = std::max(facts_.launches, launches);
    execute_all(executor, shares, launches, findings_, want_facts_);
    // If its launches may not follow each other yet, a plan may be given a second bank of scratch.
    const bool replayed = findings_.wanted(ProofName::replay);
    if (!want_facts_ || !replayed || findings_.any()) return;
    facts_.scratch_copies = std::max(
        facts_.scratch_copies, memory.banks() > 1 && !holds_with(Banks::one, message, one_storage) ? 2u : 1u);
  }

  /// Returns whether launches may follow each other with another number of scratch banks than the plan's.
  bool holds_with(Banks banks, const Message& message, bool one_storage) {
    const Memory memory(plan_, message, one_storage, banks);
    SymbolicExecutor executor(plan_, memory);
    const Shares shares(plan_, memory);
    std::vector<std::string> allow = {"values"};
    Findings findings(plan_, allow);
    execute_all(executor, shares, memory.banks() + 1, findings, false);
    return !findings.any();
  }

  /// Returns whether the excerpt without copies proves the plan, see copies.cpp. Returns false if facts are
  /// wanted, which need the whole plan, or if proofs are left out, on which the argument may rely.
  bool holds_by_copies(const Message& message, bool one_storage) {
    if (want_facts_ || !allow_.empty()) return false;
    auto [found, added] = excerpts_.try_emplace(one_storage);
    std::optional<Excerpt>& excerpt = found->second;
    if (added) excerpt = leave_out_copies(plan_, Storage(plan_, one_storage));
    if (!excerpt) return false;
    const Memory memory(excerpt->plan, message, one_storage);
    if (!memory.fits() || !Promise(excerpt->plan, memory).impossible().empty()) return false;
    SymbolicExecutor executor(excerpt->plan, memory);
    const bool one_execution =
        std::none_of(executor.counters().begin(), executor.counters().end(),
                     [](const Counter& counter) { return counter.competes(); }) &&
        std::all_of(executor.barriers().begin(), executor.barriers().end(),
                    [](const Barrier& barrier) { return barrier.members.size() == barrier.participants; });
    if (!one_execution) return false;
    const Shares shares(excerpt->plan, memory);
    const uint32_t launches = memory.banks() + 1;
    Findings quiet(excerpt->plan, allow_);
    Choices choices;
    execute(executor, shares, launches, choices, quiet, false, &*excerpt);
    if (quiet.any()) return false;
    facts_.launches = std::max(facts_.launches, launches);
    return true;
  }

  void execute_all(SymbolicExecutor& executor, const Shares& shares, uint32_t launches, Findings& findings,
                   bool facts) {
    Choices choices;
    for (uint32_t done = 1; done <= max_executions; ++done) {
      execute(executor, shares, launches, choices, findings, facts);
      if (findings.any() || !choices.next()) return;
    }
    for (uint32_t drawn = 0; drawn < max_drawn && !findings.any(); ++drawn) {
      choices.draw(drawn);
      execute(executor, shares, launches, choices, findings, facts);
    }
    if (facts && !facts_.order.empty() && facts_.other_order.empty())
      facts_.other_order = "thread blocks compete, and only some of the orders were tried";
  }

  void execute(SymbolicExecutor& executor, const Shares& shares, uint32_t launches, Choices& choices,
               Findings& findings, bool facts, const Excerpt* excerpt = nullptr) {
    const bool order = findings.wanted(ProofName::races) || findings.wanted(ProofName::replay);
    std::optional<Races> races;
    std::optional<Holding> holding;
    findings.setting.launches = launches;
    findings.setting.choices = choices.made();  // later choices are 0
    if (order) races.emplace(executor, shares, findings, facts);
    if (findings.wanted(ProofName::values)) holding.emplace(executor, findings, facts, excerpt);
    Observers observers{races ? &*races : nullptr, holding ? &*holding : nullptr};
    const bool ended = executor.run(launches, choices, observers);
    if (!ended && findings.wanted(ProofName::deadlock)) return tell_stuck(executor, findings);
    if (holding) {
      const bool racing = findings.any(ProofName::races);
      holding->compare(racing);
      if (holding->wrong()) tell_wrong(executor, *holding, findings, racing);
    }
    if (!facts) return;
    if (races) {
      facts_.entry_guarded &= races->entry_guarded();
      facts_.exit_quiescent &= races->exit_quiescent();
    }
    if (holding && facts_.rounding.empty()) facts_.rounding = holding->rounding();
    if (holding) note_order(*holding);
    if (holding) facts_.quantised = most_of(facts_.quantised, holding->quantised());
  }

  /// Reports wrong outputs. It executes the first launch again, to see all writes.
  static void tell_wrong(SymbolicExecutor& executor, Holding& holding, Findings& findings, bool racing) {
    Holding again(executor, findings, false);
    again.keep_writes();
    Flow flow(executor);
    Observers observers{&again, racing ? &flow : nullptr};
    Choices same(findings.setting.choices);
    executor.run(1, same, observers);
    holding.tell(racing ? &flow : nullptr, again.trail());
  }

  /// Records the order of addends of an execution. It is the plan's only if all executions have it.
  void note_order(const Holding& holding) {
    if (facts_.other_order.empty()) facts_.other_order = holding.other_order();
    const std::string order = holding.order();
    if (facts_.order.empty()) facts_.order = order;
    if (!facts_.other_order.empty() || order.empty() || order == facts_.order) return;
    facts_.other_order =
        "outputs are " + order + " or " + facts_.order + ", as the message is cut and blocks go on";
  }

  const Plan& plan_;
  const std::vector<std::string>& allow_;
  Findings findings_;
  const bool want_facts_;
  const Banks banks_;
  std::map<bool, std::optional<Excerpt>> excerpts_;  // by whether input and output are one memory
  ProofFacts facts_;
};

}  // namespace
}  // namespace proof

Diagnostics Proof::diagnostics() const {
  Diagnostics list;
  for (const Finding& finding : findings) list.push_back(finding.diagnostic);
  return list;
}

bool wants_proofs(const std::vector<std::string>& allow) {
  const auto left_out = [&](std::string_view name) {
    return std::find(allow.begin(), allow.end(), name) != allow.end();
  };
  return !left_out(all_proofs) && !std::all_of(std::begin(proof_names), std::end(proof_names), left_out);
}

Proof prove_plan(const Plan& plan, const std::vector<std::string>& allow, bool facts) {
  if (!wants_proofs(allow) || plan.gpus.empty()) return {};
  if (const auto without = proof::leave_out_repeats(plan)) {
    Proof proof = proof::Prover(without->plan, allow, facts).prove();
    without->put_back(proof.findings);
    return proof;
  }
  return proof::Prover(plan, allow, facts).prove();
}

bool is_proof(std::string_view name) {
  return std::find(std::begin(proof_names), std::end(proof_names), name) != std::end(proof_names);
}

std::vector<Finding> prove_again(const Plan& plan, const Diagnostics& diagnostics) {
  std::vector<std::string> others(std::begin(proof_names), std::end(proof_names)), texts;
  for (const Diagnostic& diagnostic : diagnostics) {
    std::erase(others, diagnostic.check);
    if (is_proof(diagnostic.check)) texts.push_back(diagnostic.text);
  }
  std::vector<Finding> findings = prove_plan(plan, others).findings;
  const auto same = [&] {
    return std::ranges::equal(findings, texts, {}, [](const Finding& of) { return of.diagnostic.text; });
  };
  // Findings about wrong outputs depend on whether accesses race. Races with the same cause are not reported.
  const auto races = std::find(others.begin(), others.end(), proof_names[size_t(proof::ProofName::races)]);
  if (races == others.end() || same()) return findings;
  others.erase(races);
  return prove_plan(plan, others).findings;
}

std::vector<Finding> prove_one_bank(const Plan& plan) {
  if (plan.gpus.empty()) return {};
  std::vector<std::string> others(std::begin(proof_names), std::end(proof_names));
  std::erase(others, proof_names[size_t(proof::ProofName::replay)]);
  std::vector<Finding> findings = proof::Prover(plan, others, false, proof::Banks::one).prove().findings;
  // Findings that the plan also has with its own banks do not count here.
  if (!findings.empty() && !prove_plan(plan, others).findings.empty()) return {};
  return findings;
}

Diagnostics prove(const Plan& plan, const std::vector<std::string>& allow) {
  return prove_plan(plan, allow).diagnostics();
}

}  // namespace chorale
