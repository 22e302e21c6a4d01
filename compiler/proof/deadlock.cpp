// This file proves that a plan ends. Blocks wait only for each other's posts, barriers and packets, and
// nobody takes these away again if a single chain waits for them. So one execution, in which each block
// proceeds as far as it can, gets stuck if and only if all executions do. The threads of a block proceed
// together in it, and an operation waits for all of its packets at once. A plan that ends under these rules
// ends however its threads run. If blocks compete for a semaphore or a channel, every order of them is
// executed.
//
// This costs O(n log n) for n operations, counted in all turns of their pipelines, times the orders of
// competing blocks.

#include "deadlock.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace chorale::proof {
namespace {

using Kind = SymbolicStep::Kind;
using State = Chain::State;

/// Limits the notes of one finding. Each wait of a cycle needs two.
constexpr size_t max_notes = 10;

class Stuck {
 public:
  Stuck(const SymbolicExecutor& executor, Findings& findings)
      : executor_(executor),
        findings_(findings),
        seen_(executor.chains().size()),
        on_path_(executor.chains().size(), nowhere) {}

  void say() {
    const std::vector<Chain>& chains = executor_.chains();
    for (uint32_t at = 0; at < chains.size(); ++at) {
      if (chains[at].state == State::ended || seen_[at]) continue;
      follow(at);
    }
  }

 private:
  struct Link {
    uint32_t chain;
    ProofEvent answer;  ///< the operation that would answer its wait
  };

  /// Follows a wait to the block that would answer it, then to the block for which that one waits, until a
  /// block comes again.
  void follow(uint32_t at) {
    std::vector<Link> path;
    for (;;) {
      if (on_path_[at] != nowhere) {
        say_cycle(std::span(path).subspan(on_path_[at]));
        break;
      }
      if (seen_[at]) break;  // the path leads to waits that were reported already
      seen_[at] = true;
      uint32_t by = 0;
      ProofEvent answer;
      if (!find_answer(at, by, answer)) {
        say_unanswered(at);
        break;
      }
      on_path_[at] = uint32_t(path.size());
      path.push_back({at, answer});
      at = by;
    }
    for (const Link& link : path) on_path_[link.chain] = nowhere;
  }

  void say_cycle(std::span<const Link> links) {
    std::vector<std::string> lines;
    for (const Link& link : links) {
      lines.push_back(findings_.line_of(event(link.chain)));
      lines.push_back(findings_.line_of(link.answer));
    }
    std::sort(lines.begin(), lines.end());  // two cycles may differ only in where they begin
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    if (!findings_.news(ProofName::deadlock, fmt::to_string(fmt::join(lines, " ")))) return;
    Finding& found = findings_.add(
        ProofName::deadlock, Finding::Kind::cycle, executor_.chains()[links[0].chain].place(),
        what(links[0].chain) + " never ends: it is one of a cycle of " + count(links.size(), "wait") +
            ", and each comes before the operation that would answer the previous one",
        "move one of these waits later, or the signal that it delays earlier" + other_channels(links));
    Diagnostic& finding = found.diagnostic;
    for (const Link& link : links) {
      found.events.push_back(event(link.chain));
      found.events.push_back(link.answer);
    }
    finding.line = findings_.joined_line(found.events[0]);
    for (size_t k = 0; k < links.size() && finding.notes.size() < max_notes; ++k) {
      const uint32_t next = links[(k + 1) % links.size()].chain;
      finding.notes.push_back(
          {findings_.joined_line(links[k].answer), links[k].answer.at, "this would answer it"});
      finding.notes.push_back(
          {findings_.joined_line(event(next)), executor_.chains()[next].place(),
           k + 1 == links.size() ? "but comes after the first wait" : "but comes after " + what(next)});
    }
    if (finding.notes.size() < 2 * links.size()) {
      finding.notes.push_back(
          {{}, {}, "and so on, through " + count(links.size() - finding.notes.size() / 2, "more wait")});
    }
  }

  /// Returns a hint about channels that may be mixed up. If an author takes one of several channels for
  /// another, a block waits for the peer's last signal instead of its first.
  std::string other_channels(std::span<const Link> links) const {
    const std::vector<ChannelEnds> ends = list_channel_ends(executor_.plan());
    for (const Link& link : links) {
      const SymbolicStep& step = step_of(link.chain);
      if (step.kind != Kind::await) continue;
      const uint32_t rank = executor_.chains()[link.chain].rank;
      const std::string how = how_channels_pair(ends[rank], signalled_position(step.via), rank, step.id);
      if (!how.empty()) return "; or it is meant for another channel: " + how;
    }
    return {};
  }

  void say_unanswered(uint32_t at) {
    const ProofEvent wait = event(at);
    if (!findings_.news(ProofName::deadlock, findings_.line_of(wait) + " " + what(at))) return;
    Finding& found = findings_.add(ProofName::deadlock, Finding::Kind::unanswered, wait.at,
                                   what(at) + " never ends: no remaining operation would answer it");
    found.diagnostic.line = findings_.joined_line(wait);
    found.events.push_back(wait);
  }

  /// Returns the wait of a chain.
  ProofEvent event(uint32_t at) const {
    const Chain& chain = executor_.chains()[at];
    ProofEvent event;
    event.at = chain.place();
    event.launch = chain.launch;
    if (chain.state == State::counter) event.id = step_of(at).position;
    if (chain.state == State::packets) {
      const Memory& memory = executor_.memory();
      const Range cell = memory.range_of(chain.waits_for);
      const uint64_t chunk = memory.message().chunk;
      name_packets(event, chain.rank, cell.begin / chunk, (cell.end + chunk - 1) / chunk, false);
    }
    return event;
  }

  static void name_packets(ProofEvent& event, uint32_t rank, uint64_t begin, uint64_t end, bool writes) {
    event.accesses = event.packets = true;
    event.writes = writes;
    event.buffer_rank = rank;
    event.buffer = BufferKind::scratch;
    event.begin = begin;
    event.end = end;
  }

  std::string what(uint32_t at) const {
    const Chain& chain = executor_.chains()[at];
    switch (chain.state) {
      case State::barrier:
        return "this barrier";
      case State::packets:
        return "this wait for packets";
      default:
        return step_of(at).kind == Kind::acquire ? "this acquire" : "this wait";
    }
  }

  const SymbolicStep& step_of(uint32_t at) const {
    const Chain& chain = executor_.chains()[at];
    return chain.steps.steps[chain.step];
  }

  /// Returns the chains with operations that may answer a chain's wait, in order.
  const std::vector<uint32_t>& list_answering(uint32_t waiting) {
    const Chain& wait = executor_.chains()[waiting];
    if (wait.state == State::counter) return executor_.counters()[wait.waits_for].posters;
    if (wait.state == State::barrier) return executor_.barriers()[wait.waits_for].members;
    if (senders_.empty()) list_senders();
    return senders_[executor_.memory().range_of(wait.waits_for).space];
  }

  /// Lists the chains that write packets, by the memory to which they write them.
  void list_senders() {
    senders_.resize(executor_.memory().spaces());
    for (uint32_t by = 0; by < executor_.chains().size(); ++by) {
      const Chain& chain = executor_.chains()[by];
      const Gpu& gpu = executor_.plan().gpus[chain.rank];
      const ThreadBlock& block = gpu.threadblocks[chain.block];
      for (const Op& op : block.ops) {
        list_steps(executor_.plan(), gpu, block, op, steps_);
        for (const Access& access : steps_.accesses) {
          if (!access.packets || !access.write) continue;
          std::vector<uint32_t>& senders = senders_[executor_.memory().whole(access, {}).space];
          if (senders.empty() || senders.back() != by) senders.push_back(by);
        }
      }
    }
  }

  /// Finds the next operation that answers a chain's wait, in another chain that is stuck before it.
  bool find_answer(uint32_t waiting, uint32_t& by, ProofEvent& answer) {
    for (const uint32_t candidate : list_answering(waiting)) {
      by = candidate;
      const Chain& chain = executor_.chains()[by];
      if (chain.state == State::ended) continue;
      const Gpu& gpu = executor_.plan().gpus[chain.rank];
      const ThreadBlock& block = gpu.threadblocks[chain.block];
      const uint32_t first = chain.body_end ? chain.body : chain.op;
      for (uint32_t at = first; at < block.ops.size(); ++at) {
        list_steps(executor_.plan(), gpu, block, block.ops[at], steps_);
        // Past operations of a chain answer no wait.
        const bool begun = at == chain.op || (chain.body_end && at < chain.op && chain.turns_left < 2);
        if (at < chain.op && begun) continue;
        for (size_t step = at == chain.op ? chain.step : 0; step < steps_.steps.size(); ++step) {
          answer = {};
          if (!answers(waiting, by, block.ops[at], steps_.steps[step], answer)) continue;
          answer.at = {chain.rank, chain.block, at};
          answer.launch = executor_.chains()[waiting].launch;
          return true;
        }
      }
    }
    return false;
  }

  /// \param answer  is given what of the operation answers
  bool answers(uint32_t waiting, uint32_t by, const Op& op, const SymbolicStep& step,
               ProofEvent& answer) const {
    const Chain& wait = executor_.chains()[waiting];
    const Chain& chain = executor_.chains()[by];
    switch (wait.state) {
      case State::counter:
        answer.id = step.position;
        return (step.kind == Kind::post || step.kind == Kind::release ||
                (step.kind == Kind::push && step.posts)) &&
               executor_.counter_of(chain.rank, step) == wait.waits_for;
      case State::barrier:
        // A block that is already at the barrier arrives again only in the next round.
        return step.kind == Kind::arrive && executor_.barrier_of(chain.rank, step.id) == wait.waits_for &&
               !(chain.state == State::barrier && chain.waits_for == wait.waits_for);
      case State::packets: {
        const Range cell = executor_.memory().range_of(wait.waits_for);
        for (uint32_t k = step.sources; k < step.sources + step.dests; ++k) {
          const Access& access = steps_.accesses[step.first + k];
          if (!access.packets) continue;
          // A write in any turn is an answer.
          const Range range = executor_.memory().range(access, op, {});
          if (range.space != cell.space || cell.begin < range.begin || range.end < cell.end) continue;
          name_packets(answer, access.rank, access.begin, access.end, true);
          return true;
        }
        return false;
      }
      default:
        return false;
    }
  }

  const SymbolicExecutor& executor_;
  Findings& findings_;
  SymbolicSteps steps_;
  static constexpr uint32_t nowhere = ~uint32_t{0};
  std::vector<bool> seen_;                      // by chain
  std::vector<uint32_t> on_path_;               // by chain: its position on the path that is followed now
  std::vector<std::vector<uint32_t>> senders_;  // by space of packets: chains that write there
};

}  // namespace

void tell_stuck(const SymbolicExecutor& executor, Findings& findings) { Stuck(executor, findings).say(); }

}  // namespace chorale::proof
