// This file shrinks a plan by delta debugging (Zeller and Hildebrandt 2002). It leaves out halves, quarters
// and so on of the parts, as long as the rest passes the checks and the proof finds the same. The parts are
// first ranks, then thread blocks, then signals together with their waits and each other operation, in the
// order of execution.
//
// It costs at most `most_proofs` proofs, each of a plan no larger than the first.

#include <algorithm>
#include <set>

#include "chorale/checks.hpp"
#include "chorale/proof.hpp"
#include "chorale/witness.hpp"
#include "compiler/proof/execution/findings.hpp"
#include "history.hpp"
#include "slice.hpp"

namespace chorale {
namespace {

using proof::History;
using proof::Node;

using Part = std::vector<OpPlace>;

/// Returns the chunks of an event in words.
std::string chunks_of(const ProofEvent& event) {
  return " " + std::string(buffer_names[size_t(event.buffer)]) + " of rank " +
         std::to_string(event.buffer_rank) + " " + std::to_string(event.begin) + " " +
         std::to_string(event.end);
}

/// Returns what must stay the same besides the proof and the kind: the agent, the line and the access of each
/// event. If an output is wrong, the operation that the finding names, the chunks, and what they hold must
/// stay too, because almost every part of a plan makes some output wrong.
std::vector<std::string> lines_of(const Plan& plan, const Finding& finding) {
  std::vector<std::string> lines;
  for (const ProofEvent& event : finding.events) {
    const std::string does = event.writes ? " writes" : event.accesses ? " reads" : "";
    if (event.who == ProofEvent::Who::application) {
      lines.push_back((event.segment ? "application after a launch" : "application before a launch") + does);
      continue;
    }
    const SourceLine line = proof::line_of(plan, event);
    lines.push_back(
        (line.line ? line.file + ":" + std::to_string(line.line) : proof::describe(plan, event.at)) +
        (event.who == ProofEvent::Who::proxy ? " by its proxy" : "") + does);
  }
  if (finding.kind == Finding::Kind::value && !finding.events.empty()) {
    const ProofEvent& output = finding.events[0];
    const SourceLine line = author_line(plan, finding.diagnostic.line, finding.diagnostic.at);
    lines.push_back("at " + line.file + ":" + std::to_string(line.line) + " rank " +
                    std::to_string(output.buffer_rank));
    // If no operation is known to be at fault, any unwritten part of the output shows the finding.
    if (finding.events.size() > 1 || output.who != ProofEvent::Who::application) {
      for (const ProofEvent& event : finding.events) lines.push_back(chunks_of(event));
      for (const Addend& held : finding.held)
        lines.push_back("holds " + held.words + " " + std::to_string(held.times));
    }
  }
  // The speed of the blocks decides at which wait a cycle begins, so the lines are sorted.
  if (finding.kind == Finding::Kind::cycle) std::sort(lines.begin(), lines.end());
  return lines;
}

/// Removes the body of each removed pipeline, and each pipeline whose whole body is removed.
void settle(const ThreadBlock& block, std::vector<bool>& gone) {
  for (size_t at = 0; at < block.ops.size(); ++at) {
    const auto body = gone.begin() + ptrdiff_t(at) + 1, end = body + block.ops[at].body;
    if (body == end) continue;
    if (gone[at]) std::fill(body, end, true);
    gone[at] = std::find(body, end, false) == end;
  }
}

void erase(ThreadBlock& block, const std::vector<bool>& gone) {
  std::vector<Op> kept;
  size_t head = 0, end = 0;  // the current pipeline
  for (size_t at = 0; at < block.ops.size(); ++at) {
    if (block.ops[at].body) end = at + 1 + block.ops[at].body;
    if (gone[at]) {
      if (at < end && !block.ops[at].body) --kept[head].body;
      if (block.ops[at].body) at += block.ops[at].body;
      continue;
    }
    if (block.ops[at].body) head = kept.size();
    kept.push_back(block.ops[at]);
  }
  block.ops = std::move(kept);
}

class Shrinking {
 public:
  Shrinking(const Plan& plan, const Finding& finding, uint32_t most)
      : original_(plan), lines_(lines_of(plan, finding)), most_(most), best_{plan, finding, 0} {
    // The finding must not follow from a finding of an earlier proof. For `replay`, the proof of `values` may
    // fail.
    const auto proof = std::find(std::begin(proof_names), std::end(proof_names), finding.proof);
    others_.assign(proof + 1, std::end(proof_names));
    if (finding.proof == "replay") others_.push_back("values");
    for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
      for (uint32_t block = 0; block < plan.gpus[rank].threadblocks.size(); ++block)
        gone_.emplace(std::pair(rank, block),
                      std::vector<bool>(plan.gpus[rank].threadblocks[block].ops.size()));
    }
  }

  Shrunk shrink() {
    leave_out(by([](const OpPlace& at) { return std::pair(at.rank, 0u); }));
    leave_out(by([](const OpPlace& at) { return std::pair(at.rank, at.threadblock); }));
    // After one operation is gone, others may be superfluous.
    size_t before;
    do {
      before = best_operations_;
      leave_out(operations());
    } while (best_operations_ != before && best_.proofs < most_);
    return std::move(best_);
  }

 private:
  template <class Key>
  std::vector<Part> by(Key&& key) const {
    std::map<std::pair<uint32_t, uint32_t>, Part> parts;
    for (const auto& [block, gone] : gone_) {
      for (uint32_t op = 0; op < gone.size(); ++op) {
        const OpPlace at{block.first, block.second, op};
        parts[key(at)].push_back(at);
      }
    }
    std::vector<Part> list;
    for (auto& [of, part] : parts) list.push_back(std::move(part));
    return list;
  }

  /// Lists the remaining operations: posts together with the operations that take them, and the others one by
  /// one.
  std::vector<Part> operations() const {
    std::vector<Part> parts;
    std::set<OpPlace> listed;
    // This maps places in the remaining plan to places in the original.
    std::map<OpPlace, OpPlace> was;
    for (const auto& [block, gone] : gone_) {
      uint32_t now = 0;
      for (uint32_t op = 0; op < gone.size(); ++op) {
        if (!gone[op]) was[{block.first, block.second, now++}] = {block.first, block.second, op};
      }
    }
    const auto add = [&](Part part) {
      std::erase_if(part, [&](OpPlace& at) {
        at = was.at(at);
        return !listed.insert(at).second;
      });
      if (!part.empty()) parts.push_back(std::move(part));
    };
    const ProofSetting& setting = best_.finding.setting;
    const proof::Memory memory(best_.plan, proof::list_messages(best_.plan)[setting.message],
                               setting.one_storage);
    proof::SymbolicExecutor executor(best_.plan, memory);
    History history(executor);
    proof::Choices choices(setting.choices);
    executor.run(1, choices, history);
    for (uint32_t position = 0; position < history.nodes().size(); ++position) {
      const Node& node = history.nodes()[position];
      if (node.kind == Node::Kind::begin || node.kind == Node::Kind::end) continue;
      Part part = {history.place(node)};
      for (const proof::Cause& cause : history.before(position)) {
        const Node& other = history.nodes()[cause.node];
        if (node.kind == Node::Kind::control && other.kind == Node::Kind::control &&
            other.chain != node.chain)
          part.push_back(history.place(other));
      }
      // The post comes first and was listed alone, so both ways are tried.
      if (part.size() > 1) {
        Part pair;
        for (const OpPlace& at : part) pair.push_back(was.at(at));
        parts.push_back(std::move(pair));
      }
      add(std::move(part));
    }
    // Operations that are never executed come last.
    for (const auto& [now, before] : was) {
      if (listed.insert(before).second) parts.push_back({before});
    }
    return parts;
  }

  /// Tries to leave out windows of all sizes. Parts that are needed stay.
  void leave_out(std::vector<Part> parts) {
    for (size_t window = (parts.size() + 1) / 2; window; window /= 2) {
      for (size_t at = 0; at < parts.size();) {
        if (best_.proofs >= most_) return;
        const size_t end = std::min(at + window, parts.size());
        if (without(parts, at, end))
          parts.erase(parts.begin() + ptrdiff_t(at), parts.begin() + ptrdiff_t(end));
        else
          at = end;
      }
    }
  }

  bool without(const std::vector<Part>& parts, size_t from, size_t to) {
    auto gone = gone_;
    for (size_t at = from; at < to; ++at) {
      for (const auto& [rank, block, op] : parts[at]) gone[{rank, block}][op] = true;
    }
    for (auto& [block, ops] : gone) settle(original_.gpus[block.first].threadblocks[block.second], ops);
    if (gone == gone_) return true;  // all of them are gone already
    Plan plan = original_;
    size_t operations = 0;
    for (const auto& [block, ops] : gone) {
      ThreadBlock& of = plan.gpus[block.first].threadblocks[block.second];
      erase(of, ops);
      operations += of.ops.size();
    }
    if (!check(plan).empty()) return false;
    ++best_.proofs;
    for (Finding& finding : prove_plan(plan, others_).findings) {
      if (finding.proof != best_.finding.proof || finding.kind != best_.finding.kind ||
          lines_of(plan, finding) != lines_)
        continue;
      best_.plan = std::move(plan);
      best_.finding = std::move(finding);
      best_operations_ = operations;
      gone_ = std::move(gone);
      return true;
    }
    return false;
  }

  const Plan& original_;
  const std::vector<std::string> lines_;
  const uint32_t most_;
  std::vector<std::string> others_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<bool>> gone_;  // by rank and block: operations
  size_t best_operations_ = 0;
  Shrunk best_;
};

}  // namespace

Shrunk shrink(const Plan& plan, const Finding& finding, uint32_t most_proofs) {
  // A plan without operations would have this finding too, but show nothing, so no operation is left out.
  if (finding.kind == Finding::Kind::value && !finding.diagnostic.at) return {plan, finding, 0};
  return Shrinking(plan, finding, most_proofs).shrink();
}

}  // namespace chorale
