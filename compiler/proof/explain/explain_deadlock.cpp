// This file explains waits that never end. It shows a cycle of waits with the answer of each, or a single
// wait with what came before it.

#include <algorithm>

#include "compiler/plan/report.hpp"
#include "explain.hpp"

namespace chorale::proof {
namespace {

using State = Chain::State;

/// Returns "A", "B", ... "Z", "27".
std::string mark(size_t at) { return at < 26 ? std::string(1, char('A' + at)) : number(at + 1); }

void explain_cycle(const Finding& finding, Slice& slice, Witness& witness) {
  const size_t waits = finding.events.size() / 2;
  std::vector<size_t> at_wait(waits), at_answer(waits);
  std::string cycle;
  for (size_t k = 0; k < waits; ++k) {
    const ProofEvent &wait = finding.events[2 * k], &answer = finding.events[2 * k + 1];
    at_wait[k] = slice.add_stuck(wait, mark(k));
    at_answer[k] = slice.add_missing(answer);
    if (k < Witness::most_events / 2)
      cycle += (k ? ", " : "") + mark(k) + "'s answer comes only after " + mark((k + 1) % waits);
  }
  for (size_t k = 0; k < waits; ++k) {
    slice.link(at_answer[k], at_wait[k]);
    slice.link(at_wait[(k + 1) % waits], at_answer[k]);
  }
  witness.because.push_back(cycle + (waits > Witness::most_events / 2 ? ", and so on" : ""));
}

class Unanswered {
 public:
  Unanswered(const History& history, const Finding& finding, Slice& slice, Witness& witness)
      : history_(history), executor_(history.executor()), slice_(slice), witness_(witness) {
    slice_.add_stuck(finding.events[0], "A");
    for (const Chain& chain : executor_.chains()) {
      const OpPlace at = chain.place(), &wanted = finding.events[0].at;
      if (at.rank != wanted.rank || at.threadblock != wanted.threadblock || at.op != wanted.op) continue;
      if (chain.state == State::counter) tell_counter(chain);
      if (chain.state == State::barrier) tell_barrier(executor_.barriers()[chain.waits_for]);
      if (chain.state == State::packets) tell_packets(chain);
    }
  }

 private:
  void tell_counter(const Chain& chain) {
    const Counter& counter = executor_.counters()[chain.waits_for];
    const SymbolicStep& step = chain.steps.steps[chain.step];
    const std::vector<uint32_t> posts = history_.posts(chain.waits_for);
    // The last two are enough to show which block is behind.
    for (size_t at = posts.size() - std::min<size_t>(posts.size(), 2); at < posts.size(); ++at)
      slice_.add(posts[at]);
    const bool semaphore = step.kind == SymbolicStep::Kind::acquire;
    const std::string of = semaphore ? "semaphore " + number(step.id) + " of " + rank_name(chain.rank)
                                     : std::string(channel_type_names[size_t(step.via)]) + " channel " +
                                           number(step.id) + " of " + rank_name(chain.rank);
    const std::string what = semaphore ? "release" : "signal";
    const uint64_t wanted = counter.takes + 1 - std::min(counter.takes, counter.initial);
    std::string text = what + " #" + number(wanted) + " on " + of + " is never sent: ";
    if (counter.posters.empty())
      text += "nobody sends there";
    else
      text += "the plan sends only " + number(posts.size()) + " there";
    if (counter.initial) text += ", and it began with " + number(counter.initial);
    witness_.because.push_back(text);
  }

  void tell_barrier(const Barrier& barrier) {
    witness_.because.push_back("barrier " + number(barrier.id) + " of " + rank_name(barrier.rank) +
                               " is for " + count(barrier.participants, "thread block") + ": " +
                               number(barrier.arrived % barrier.participants) +
                               " arrived in this round, and no other block will");
  }

  void tell_packets(const Chain& chain) {
    const Memory& memory = executor_.memory();
    const Range cell = memory.range_of(chain.waits_for);
    const uint64_t chunk = memory.message().chunk;
    witness_.because.push_back("the packets of scratch[" + number(cell.begin / chunk) + ":" +
                               number((cell.end + chunk - 1) / chunk) + "] of " +
                               rank_name(cell.space / spaces_per_rank) + " are not written in launch " +
                               number(chain.launch + 1));
  }

  const History& history_;
  const SymbolicExecutor& executor_;
  Slice& slice_;
  Witness& witness_;
};

}  // namespace

void explain_deadlock(const History& history, const Finding& finding, Slice& slice, Witness& witness) {
  if (finding.kind == Finding::Kind::cycle)
    explain_cycle(finding, slice, witness);
  else
    Unanswered(history, finding, slice, witness);
}

}  // namespace chorale::proof
