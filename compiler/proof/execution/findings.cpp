#include "findings.hpp"

#include <algorithm>
#include <utility>

#include "compiler/plan/lines.hpp"
#include "compiler/plan/resolve.hpp"

namespace chorale::proof {

SourceLine line_of(const Plan& plan, const ProofEvent& event) {
  if (event.who == ProofEvent::Who::application) return {};
  const Gpu& gpu = plan.gpus[event.at.rank];
  const ThreadBlock& block = gpu.threadblocks[event.at.threadblock];
  const Op& op = block.ops[event.at.op];
  if (event.id) return line_of_entry(plan, op, OpList::ids, *event.id);
  std::optional<SourceLine> line;
  if (!event.accesses || plan.calls_of(op).empty()) return plan.line_of(op);
  for_each_place(plan, gpu, block, op,
                 [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                   const bool same = is_write(field.role) == event.writes && rank == event.buffer_rank &&
                                     buffer == event.buffer && operand.index < event.end &&
                                     event.begin < operand.index + operand.size;
                   if (!same || line) return;
                   const size_t position = size_t(&operand - block.sources(op).data());
                   line = position < op.sources
                              ? line_of_entry(plan, op, OpList::sources, position)
                              : line_of_entry(plan, op, OpList::destinations, position - op.sources);
                 });
  return line ? *line : plan.line_of(op);
}

Findings::Findings(const Plan& plan, const std::vector<std::string>& allow) : plan_(plan) {
  const auto named = [&](std::string_view name) {
    return std::find(allow.begin(), allow.end(), name) != allow.end();
  };
  for (size_t at = 0; at < wanted_.size(); ++at) wanted_[at] = !named(all_proofs) && !named(proof_names[at]);
}

Finding& Findings::add(ProofName proof, Finding::Kind kind, std::optional<OpPlace> at, std::string text,
                       std::string help, std::string path) {
  Finding& finding = found_[size_t(proof)].emplace_back();
  finding.proof = proof_names[size_t(proof)];
  finding.kind = kind;
  finding.setting = setting;
  finding.diagnostic = {
      std::string(finding.proof), {}, at, std::move(text), {}, std::move(help), std::move(path)};
  return finding;
}

std::string Findings::line_of(const OpPlace& at) const {
  ProofEvent event;
  event.at = at;
  return line_of(event);
}

std::string Findings::line_of(const ProofEvent& event) const {
  const SourceLine line = proof::line_of(plan_, event);
  const OpPlace& at = event.at;
  return line.line ? line.file + ":" + number(line.line)
                   : number(at.rank) + "." + number(at.threadblock) + "." + number(at.op);
}

SourceLine Findings::joined_line(const ProofEvent& event) const {
  const Op* const op = find_op(plan_, event.at);
  return op && !plan_.calls_of(*op).empty() ? proof::line_of(plan_, event) : SourceLine{};
}

bool Findings::news(ProofName proof, const OpPlace& at, const std::optional<OpPlace>& other,
                    const std::string& words) {
  return news(proof, line_of(at) + " " + (other ? line_of(*other) : words));
}

bool Findings::news(ProofName proof, const std::string& key) {
  std::vector<std::string>& said = said_[size_t(proof)];
  if (full(proof) || std::find(said.begin(), said.end(), key) != said.end()) return false;
  said.push_back(key);
  return true;
}

bool Findings::any() const {
  return std::any_of(found_.begin(), found_.end(), [](const auto& list) { return !list.empty(); });
}

void Findings::add_note(const std::string& text) {
  for (std::vector<Finding>& list : found_) {
    for (Finding& finding : list) finding.diagnostic.notes.push_back({{}, {}, text});
  }
}

/// Gives a finding and its notes the lines of the accesses that they are about.
void Findings::name_lines(Finding& finding) const {
  const auto name = [&](SourceLine& line, const std::optional<OpPlace>& at) {
    if (line.line || !at) return;
    // The finding is about its last access.
    for (auto event = finding.events.rbegin(); event != finding.events.rend(); ++event) {
      const OpPlace& of = event->at;
      if (!event->accesses || event->who == ProofEvent::Who::application || of.rank != at->rank ||
          of.threadblock != at->threadblock || of.op != at->op)
        continue;
      const Op& op = plan_.gpus[of.rank].threadblocks[of.threadblock].ops[of.op];
      if (!plan_.calls_of(op).empty()) line = proof::line_of(plan_, *event);
      return;
    }
  };
  name(finding.diagnostic.line, finding.diagnostic.at);
  for (Note& note : finding.diagnostic.notes) name(note.line, note.at);
}

/// Puts a read that misses a write before the race of the same two lines in which the write comes too early
/// for the read. The first one shows what the author has forgotten.
void Findings::put_missed_writes_first(std::vector<Finding>& list) const {
  const auto line = [&](const Finding& finding, size_t event) {
    return proof::line_of(plan_, finding.events[event]);
  };
  const auto is_race = [&](const Finding& finding, bool written) {
    return finding.kind == Finding::Kind::race && finding.events.size() == 2 &&
           finding.events[0].writes == written && finding.events[1].writes != written &&
           line(finding, 0).line && line(finding, 1).line;
  };
  for (auto early = list.begin(); early != list.end(); ++early) {
    if (!is_race(*early, false)) continue;
    const auto missed = std::find_if(early + 1, list.end(), [&](const Finding& other) {
      return is_race(other, true) && line(other, 0) == line(*early, 1) && line(other, 1) == line(*early, 0);
    });
    if (missed != list.end()) std::rotate(early, missed, missed + 1);
  }
}

std::vector<Finding> Findings::take() {
  for (std::vector<Finding>& list : found_) {
    if (list.empty()) continue;
    std::vector<Finding> all;
    put_missed_writes_first(list);
    if (&list == &found_[size_t(ProofName::races)]) all = std::move(found_[size_t(ProofName::values)]);
    std::move(list.begin(), list.end(), std::back_inserter(all));
    for (Finding& finding : all) name_lines(finding);
    return all;
  }
  return {};
}

}  // namespace chorale::proof
