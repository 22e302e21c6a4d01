// This file tries remedies, each on a copy of the plan. A remedy for one pair of accesses may not be
// everything that the plan needs. The proofs check the plan again after the author has changed it.
//
// Each remedy costs one copy and one execution of the plan. There are only a few.

#include "remedies.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "chorale/proof.hpp"
#include "compiler/plan/report.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/proof/execution/findings.hpp"
#include "paths.hpp"
#include "slice.hpp"
#include "trial.hpp"

namespace chorale::proof {
namespace {

using Who = ProofEvent::Who;

/// Says which operations are in pipelines. It looks at each thread block once.
class Pipelines {
 public:
  explicit Pipelines(const Plan& plan) : plan_(plan) {}

  bool contain(const OpPlace& at) {
    const std::vector<Op>& ops = plan_.gpus[at.rank].threadblocks[at.threadblock].ops;
    const auto [found, added] = inside_.try_emplace({at.rank, at.threadblock});
    if (added) {
      found->second.resize(ops.size());
      for (size_t head = 0; head < ops.size(); ++head)
        std::fill_n(found->second.begin() + ptrdiff_t(head) + 1, ops[head].body, true);
    }
    return found->second[at.op];
  }

 private:
  const Plan& plan_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<bool>> inside_;  // by rank and block: operations
};

/// Limits the waits of other blocks, or the signals, that are tried, because each costs an execution and
/// proofs of the plan.
constexpr size_t most_waits = 4;

class Remedies {
 public:
  /// \param mark  names the second event
  Remedies(const History& history, const Finding& finding, std::string mark = "B")
      : plan_(history.executor().plan()),
        history_(history),
        finding_(finding),
        pipelines_(plan_),
        mark_(std::move(mark)) {
    const ProofEvent &first = finding.events[0], &second = finding.events[1];
    if (first.who == Who::application || second.who == Who::application) return;
    const uint32_t line = plan_.first_at(op_at(first.at));
    if (line == plan_.first_at(op_at(second.at))) line_of_both_ = line;
  }

  RemedyList find() {
    list();
    return {std::move(list_), std::move(misplaced_), std::move(wrong_order_), swapped_};
  }

 private:
  void list() {
    for (const ProofEvent& event : finding_.events) {
      if (event.who != Who::application && pipelines_.contain(event.at)) return;
    }
    publish();
    if (!list_.empty()) return;
    // A write may stand before a read that missed it, see Races::missed().
    const bool missed = history_.find(finding_.events[1]) < history_.find(finding_.events[0]);
    if (is_wrong_as_executed(missed)) {
      wrong_order_ = name_of(missed) + " comes before " + name_of(!missed);
      swapped_ = !missed;
    }
    if (!swapped_) return change();
    Finding swapped = finding_;
    std::swap(swapped.events[0], swapped.events[1]);
    Remedies other(history_, swapped, "A");
    other.change();
    list_ = std::move(other.list_);
    misplaced_ = std::move(other.misplaced_);
  }

  void change() {
    take_wait();
    if (!list_.empty()) return;
    wait_sooner();
    take_turns();
    if (list_.empty() && !passed_on_.empty())
      list_.push_back(passed_on_);
    else
      order();
  }

  /// Returns whether a read and a write must come in another order than they came. This holds if fewer
  /// outputs are wrong then.
  /// \param reversed  true: the second event came before the first one
  bool is_wrong_as_executed(bool reversed) const {
    const ProofEvent &first = finding_.events[0], &second = finding_.events[1];
    if (first.who == Who::application || second.who == Who::application || first.launch || launches_apart() ||
        first.writes == second.writes || same_block(first.at, second.at))
      return false;
    const std::optional<uint64_t> wrong = Trial(history_, finding_).wrong_outputs(reversed);
    if (!wrong || !*wrong) return false;
    Trial other(history_, finding_);
    const OpPlace &sooner = reversed ? first.at : second.at, &later = reversed ? second.at : first.at;
    if (sooner.rank == later.rank)
      other.insert_semaphore(behind(sooner), later);
    else
      other.insert_signal(behind(sooner), later);
    const std::optional<uint64_t> wrong_then = other.wrong_outputs(!reversed);
    return wrong_then && *wrong_then < *wrong;
  }

  bool is_signal(const OpPlace& at) const {
    const Opcode code = op_at(at).code;
    return code == Opcode::signal || code == Opcode::relaxed_signal || code == Opcode::sem_release;
  }

  /// Tries to move a signal that the thread block of `sooner` makes before it, so that it comes after it.
  /// \param reversed  see Trial::orders()
  /// \returns whether that orders the events
  bool signal_later(const ProofEvent& sooner, bool reversed) {
    const bool blocks =
        std::all_of(finding_.events.begin(), finding_.events.end(), [](const ProofEvent& event) {
          return event.who != Who::application;  // whose launch is the next one when it follows the plan's
        });
    if ((blocks && launches_apart()) || sooner.who != Who::block) return false;
    size_t tried = 0;
    for (OpPlace signal = sooner.at; signal.op-- > 0 && tried < most_waits;) {
      if (!is_signal(signal) || pipelines_.contain(signal)) continue;
      ++tried;
      Trial trial(history_, finding_);
      move_down_everywhere(trial, signal, sooner.at);
      if (!trial.orders(reversed) || !findings_if_no_more(trial.plan())) continue;
      list_.push_back("the " + std::string(info(op_at(signal).code).name) + " of " + line(signal) +
                      " moved after " + last_line(sooner.at));
      return true;
    }
    return false;
  }

  /// Moves a signal behind an operation, and does the same with each such pair of lines of all thread blocks.
  void move_down_everywhere(Trial& trial, const OpPlace& signal, const OpPlace& behind) const {
    const uint32_t signal_line = plan_.first_at(op_at(signal)), line = plan_.first_at(op_at(behind));
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      const std::vector<ThreadBlock>& blocks = plan_.gpus[rank].threadblocks;
      for (uint32_t block = 0; block < blocks.size(); ++block) {
        const std::vector<Op>& ops = blocks[block].ops;
        uint32_t to = History::none;
        for (uint32_t op = uint32_t(ops.size()); op-- > 0;) {
          const OpPlace here{rank, block, op};
          const bool is_line = line && plan_.first_at(ops[op]) == line && ops[op].code == op_at(behind).code;
          if (here == behind || is_line) to = op;
          const bool moves = here == signal || (signal_line && plan_.first_at(ops[op]) == signal_line &&
                                                ops[op].code == op_at(signal).code);
          if (!moves || to == History::none || pipelines_.contain(here)) continue;
          trial.move_down(here, to);
          to = History::none;
        }
      }
    }
  }

  /// Tries the changes that make the second event come after the first.
  void order() {
    const ProofEvent &first = finding_.events[0], &second = finding_.events[1];
    const bool blocks = first.who != Who::application && second.who != Who::application;
    if (first.who == Who::proxy && !first.writes) flush();
    if (blocks && first.at.rank == second.at.rank) {
      if (first.at.threadblock == second.at.threadblock)
        synchronise();
      else
        release();
    }
    if (first.at.rank != second.at.rank) ends_before(first, second) ? outlast() : signal();
  }

  void offer(const Trial& trial, std::string text, bool reversed = false) {
    if (trial.orders(reversed)) list_.push_back(std::move(text));
  }
  std::string name_of(size_t event) const {
    const ProofEvent& of = finding_.events[event];
    if (of.who == Who::application) return "the application";
    const SourceLine own = line_of(plan_, of);
    if (line_of_both_ || !own.line) return line(of.at);
    return own.file + ":" + number(own.line);
  }
  /// \param last  see place_of()
  std::string line(const OpPlace& at, bool last = false) const {
    std::string text = proof::place_of(plan_, at, last);
    if (line_of_both_ && plan_.first_at(op_at(at)) == line_of_both_) text += " (op " + number(at.op) + ")";
    return text;
  }
  /// Returns the line behind which something is to come after an operation.
  std::string last_line(const OpPlace& at) const { return line(at, true); }
  bool launches_apart() const { return finding_.events[0].launch != finding_.events[1].launch; }

  /// Tries the plain forms of the relaxed operations on the path between the two.
  void publish() {
    const uint32_t first = history_.find(finding_.events[0]), second = history_.find(finding_.events[1]);
    const Past past(history_, second, false);
    if (!past.has(first)) return;
    Trial trial(history_, finding_);
    std::string text;
    for (const uint32_t at : past.path_from(first)) {
      const Node& node = history_.nodes()[at];
      if (node.kind != Node::Kind::control) continue;
      const OpPlace place = history_.place(node);
      Op& op = trial.op(place);
      const Opcode plain = op.code == Opcode::relaxed_signal ? Opcode::signal
                           : op.code == Opcode::relaxed_wait ? Opcode::wait
                                                             : op.code;
      if (plain == op.code) continue;
      const std::string change =
          std::string(info(plain).name) + " for " + std::string(info(op.code).name) + " at " + line(place);
      // Usually all ranks do the same.
      if (text.find(change) == text.npos) text += (text.empty() ? "" : ", ") + change;
      op.code = plain;
    }
    if (!text.empty()) offer(trial, text);
  }

  /// Tries launches that use two halves of scratch in turns.
  void take_turns() {
    if (finding_.proof != "replay" || finding_.events[0].buffer != BufferKind::scratch ||
        plan_.use_double_scratch_buffer)
      return;
    Plan plan = plan_;
    plan.use_double_scratch_buffer = true;
    std::vector<std::string> others(std::begin(proof_names), std::end(proof_names));
    std::erase(others, "replay");
    if (prove_plan(plan, others).findings.empty())
      list_.push_back("use_double_scratch_buffer, which takes twice the scratch");
  }

  /// Calls improve(const OpPlace&) for waits of the second event's rank that come after the first event,
  /// until it returns true or most_waits were tried.
  /// \param suits  returns whether a wait may be tried
  template <class Suits, class Improve>
  void each_wait(Suits&& suits, Improve&& improve) const {
    const ProofEvent &first = finding_.events[0], &second = finding_.events[1];
    if (launches_apart() || second.who == Who::application || ends_before(first, second)) return;
    const Future future(history_, history_.find(first), first.writes);
    size_t tried = 0;
    for (uint32_t at = 0; at < history_.nodes().size() && tried < most_waits; ++at) {
      const Node& node = history_.nodes()[at];
      if (node.kind != Node::Kind::control || node.launch != second.launch) continue;
      const OpPlace wait = history_.place(node);
      const Opcode code = op_at(wait).code;
      if (code != Opcode::wait && code != Opcode::relaxed_wait && code != Opcode::sem_acquire) continue;
      if (wait.rank != second.at.rank || !suits(wait) || !future.has(at) || pipelines_.contain(wait))
        continue;
      ++tried;
      if (improve(wait)) return;
    }
  }

  /// Tries a wait that another thread block of the rank makes. It is offered only if that block does not need
  /// the wait itself. Then the author has mixed up the blocks.
  void take_wait() {
    const ProofEvent &first = finding_.events[0], &second = finding_.events[1];
    const auto elsewhere = [&](const OpPlace& wait) {
      return !same_block(wait, second.at) && (first.who == Who::application || !same_block(wait, first.at));
    };
    each_wait(elsewhere, [&](const OpPlace& wait) {
      Trial trial(history_, finding_);
      move_everywhere(trial, wait, second.at);
      if (!trial.orders(false)) return false;
      if (needs_it(trial.plan(), wait)) {
        const bool acquires = op_at(wait).code == Opcode::sem_acquire;
        if (misplaced_.empty())
          misplaced_ = rank_name(wait.rank) +
                       (acquires ? " acquires such a semaphore at " : " waits for such a signal at ") +
                       line(wait) + ", but in thread block " + number(block_of(wait).id) + ", and " + mark_ +
                       " is in block " + number(block_of(second.at).id);
        if (passed_on_.empty()) pass_on(wait);
        return false;
      }
      misplaced_.clear();
      list_.push_back(the_wait(wait) + " in thread block " + number(block_of(second.at).id) + " instead of " +
                      number(block_of(wait).id));
      return true;
    });
  }

  /// Tries to let the block of a wait tell the block of the second event.
  void pass_on(const OpPlace& wait) {
    const OpPlace& second = finding_.events[1].at;
    Trial trial(history_, finding_);
    trial.insert_semaphore(behind(wait), second);
    if (!trial.orders(false)) return;
    passed_on_ = "a semaphore that is released after " + line(wait) + " in thread block " +
                 number(block_of(wait).id) + " and acquired before " + line(second) + " in thread block " +
                 number(block_of(second).id);
    Trial other(history_, finding_);
    other.insert_barrier(behind(wait), second);
    if (other.orders(false)) passed_on_ += ", or a barrier of the two thread blocks there";
  }

  /// Moves a wait before an operation of another thread block, and does the same on all ranks with the
  /// operations of these lines in these two blocks.
  void move_everywhere(Trial& trial, const OpPlace& wait, const OpPlace& before) const {
    const auto alike = [&](uint32_t rank, const OpPlace& one) {
      std::vector<OpPlace> all;
      if (one.threadblock >= plan_.gpus[rank].threadblocks.size()) return all;
      const std::vector<Op>& ops = plan_.gpus[rank].threadblocks[one.threadblock].ops;
      const uint32_t line = plan_.first_at(op_at(one));
      for (uint32_t op = 0; op < ops.size(); ++op) {
        const OpPlace here{rank, one.threadblock, op};
        if (here == one || (line && plan_.first_at(ops[op]) == line && ops[op].code == op_at(one).code &&
                            !pipelines_.contain(here)))
          all.push_back(here);
      }
      return all;
    };
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      std::vector<OpPlace> waits = alike(rank, wait), places = alike(rank, before);
      if (waits.size() != places.size()) {
        if (rank != wait.rank) continue;
        waits = {wait};
        places = {before};
      }
      for (size_t at = waits.size(); at-- > 0;) trial.move_wait(waits[at], places[at]);
    }
  }

  /// Tries a wait that the thread block makes only after the second access. Ranks mostly do the same, so the
  /// waits of that line move in all of them.
  void wait_sooner() {
    const OpPlace& second = finding_.events[1].at;
    const auto later = [&](const OpPlace& wait) { return same_block(wait, second) && wait.op > second.op; };
    each_wait(later, [&](const OpPlace& wait) {
      // If the two lines stand in a loop, the wait of this line stands there already, for another peer.
      if (is_repeated_before(wait, second)) return false;
      Trial trial(history_, finding_);
      move_up_everywhere(trial, wait, second);
      if (!trial.orders(false) || !findings_if_no_more(trial.plan())) return false;
      list_.push_back(the_wait(wait) + " moved before " + line(second));
      return true;
    });
  }

  /// Returns whether an operation of the same line as a wait stands before `other` in its thread block.
  bool is_repeated_before(const OpPlace& wait, const OpPlace& other) const {
    const uint32_t line = plan_.first_at(op_at(wait));
    const std::vector<Op>& ops = block_of(other).ops;
    return line && std::any_of(ops.begin(), ops.begin() + other.op,
                               [&](const Op& op) { return plan_.first_at(op) == line; });
  }

  std::string the_wait(const OpPlace& at) const {
    return "the " + std::string(info(op_at(at).code).name) + " of " + line(at);
  }

  /// Moves a wait before an operation, and does the same in all thread blocks with operations of these lines.
  void move_up_everywhere(Trial& trial, const OpPlace& wait, const OpPlace& before) const {
    const uint32_t wait_line = plan_.first_at(op_at(wait)), line = plan_.first_at(op_at(before));
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      const std::vector<ThreadBlock>& blocks = plan_.gpus[rank].threadblocks;
      for (uint32_t block = 0; block < blocks.size(); ++block) {
        const OpPlace here{rank, block, 0};
        if (same_block(here, wait)) {
          trial.move_up(wait, before.op);
          continue;
        }
        if (!wait_line || !line) continue;
        const std::vector<Op>& ops = blocks[block].ops;
        std::optional<uint32_t> to;
        for (uint32_t op = 0; op < ops.size() && !ops[op].body; ++op) {
          if (plan_.first_at(ops[op]) == line) to = op;
          if (!to || plan_.first_at(ops[op]) != wait_line || ops[op].code != op_at(wait).code) continue;
          trial.move_up({rank, block, op}, *to);
          break;
        }
      }
    }
  }

  /// Returns the findings of a changed plan; nothing if there are more than the plan has, or if it never
  /// ends.
  std::optional<std::vector<Finding>> findings_if_no_more(const Plan& changed) {
    std::vector<Finding> findings = prove_plan(changed).findings;
    if (!findings_of_plan_) findings_of_plan_ = prove_plan(plan_).findings.size();
    const bool ends = std::all_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.kind == Finding::Kind::race || finding.kind == Finding::Kind::value;
    });
    if (!ends || findings.size() > *findings_of_plan_) return {};
    return findings;
  }

  /// Returns whether a block needs the wait that was moved away from it: whether there are more findings now,
  /// one about what came after the wait, or the plan never ends. What the block did before the wait may race
  /// as it did.
  bool needs_it(const Plan& moved, const OpPlace& wait) {
    const std::optional<std::vector<Finding>> findings = findings_if_no_more(moved);
    if (!findings) return true;
    for (const Finding& finding : *findings) {
      for (const ProofEvent& event : finding.events) {
        if (event.who != Who::application && same_block(wait, event.at) && event.at.op >= wait.op)
          return true;
      }
    }
    return false;
  }

  const ThreadBlock& block_of(const OpPlace& at) const {
    return plan_.gpus[at.rank].threadblocks[at.threadblock];
  }
  const Op& op_at(const OpPlace& at) const { return block_of(at).ops[at.op]; }

  void synchronise() {
    Trial trial(history_, finding_);
    trial.insert(trial.second(), Opcode::nop);
    offer(trial, "the threads of the block synchronised before " + line(finding_.events[1].at));
  }

  void release() {
    if (launches_apart()) return;
    Trial trial(history_, finding_);
    trial.insert_semaphore(behind(trial.first()), trial.second());
    offer(trial, "a semaphore that is released after " + last_line(finding_.events[0].at) +
                     " and acquired before " + line(finding_.events[1].at));
  }

  void flush() {
    const OpPlace at = finding_.events[0].at;
    const Op& op = op_at(at);
    const auto ids = block_of(at).op_ids(op);
    Trial trial(history_, finding_);
    trial.insert(behind(at), Opcode::flush, {ids.begin(), ids.end()}, op.via);
    offer(trial, "flush after " + last_line(at));
  }

  static OpPlace behind(OpPlace at) {
    ++at.op;
    return at;
  }
  /// Returns the place in its first block where a rank's launch begins or ends.
  OpPlace boundary(uint32_t rank, bool end) const {
    return {rank, 0, end ? uint32_t(plan_.gpus[rank].threadblocks[0].ops.size()) : 0};
  }

  /// Tries to make the launch of the first event end after the second event.
  void outlast() {
    const ProofEvent &end = finding_.events[0], &late = finding_.events[1];
    if (plan_.gpus[end.at.rank].threadblocks.empty() || signal_later(late, true)) return;
    Trial trial(history_, finding_);
    trial.insert_signal(behind(late.at), boundary(end.at.rank, true));
    offer(trial,
          "a signal of " + rank_name(late.at.rank) + " after " + last_line(late.at) + ", for which " +
              rank_name(end.at.rank) + " waits before its launch ends",
          true);
  }

  void signal() {
    const ProofEvent &first = finding_.events[0], &second = finding_.events[1];
    for (const ProofEvent* const event : {&first, &second}) {
      if (plan_.gpus[event->at.rank].threadblocks.empty()) return;
    }
    if (signal_later(first, false)) return;
    Trial trial(history_, finding_);
    const bool begins = first.who == Who::application;
    const OpPlace from = begins ? boundary(first.at.rank, false) : behind(first.at);
    OpPlace to = second.at;
    std::string until = "before " + (second.who == Who::application ? "its launch ends" : line(second.at));
    if (second.who == Who::application) to = boundary(to.rank, true);
    if (launches_apart() && second.who != Who::application) {
      // The next launch comes after all of this one.
      to.op = uint32_t(plan_.gpus[to.rank].threadblocks[to.threadblock].ops.size());
      until = "before its launch ends";
    }
    trial.insert_signal(from, to);
    offer(trial, "a signal of " + rank_name(first.at.rank) +
                     (begins ? " as its launch begins" : " after " + last_line(first.at)) + ", for which " +
                     rank_name(second.at.rank) + " waits " + until);
  }

  const Plan& plan_;
  const History& history_;
  const Finding& finding_;
  mutable Pipelines pipelines_;
  const std::string mark_;
  uint32_t line_of_both_ = 0;  ///< see Plan::first_at(); 0 if the two events have different lines
  std::vector<std::string> list_;
  std::string misplaced_;    ///< see RemedyList
  std::string wrong_order_;  ///< see Witness
  bool swapped_ = false;     ///< see RemedyList
  std::string passed_on_;    ///< a remedy that lets the block of the misplaced wait tell another one
  std::optional<size_t> findings_of_plan_;  ///< their number
};

}  // namespace

bool ends_before(const ProofEvent& end, const ProofEvent& other) {
  // A launch has two segments: see Races::begin() and end().
  return end.who == Who::application && other.who != Who::application && end.segment == 2 * other.launch + 2;
}

RemedyList find_remedies(const History& history, const Finding& finding) {
  return Remedies(history, finding).find();
}

}  // namespace chorale::proof
