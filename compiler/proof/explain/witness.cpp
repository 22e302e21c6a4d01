// This file makes counter-examples. It executes the execution of a finding again and selects the slice that
// matters.

#include "chorale/witness.hpp"

#include <algorithm>

#include "compiler/plan/report.hpp"
#include "explain.hpp"

namespace chorale {
namespace {

/// Returns the agent of an event, such as "rank 0, block 1".
std::string agent_of(const WitnessEvent& event) {
  std::string text = rank_name(event.at.rank);
  if (event.who == ProofEvent::Who::application) return text;
  text += event.who == ProofEvent::Who::proxy ? ", proxy of block " : ", block ";
  return text + number(event.at.threadblock);
}

std::string line_of(const WitnessEvent& event) {
  if (event.who == ProofEvent::Who::application) return {};
  return event.line.line ? event.line.file + ":" + number(event.line.line) : "op " + number(event.at.op);
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

/// Returns the events that an event comes after, such as "after 1, 3".
std::string causes_of(const Witness& witness, uint32_t event) {
  std::string seen, unseen;
  std::vector<uint32_t> said;
  for (const WitnessEdge& edge : witness.edges) {
    if (edge.to != event || std::find(said.begin(), said.end(), edge.from) != said.end()) continue;
    said.push_back(edge.from);
    std::string& list = edge.publishes ? seen : unseen;
    list += (list.empty() ? "after " : ", ") + number(edge.from + 1);
  }
  if (unseen.empty()) return seen;
  return seen + (seen.empty() ? "" : "; ") + unseen + ", whose writes it may not see";
}

}  // namespace

Witness explain(const Plan& plan, const Finding& finding) {
  using namespace proof;
  Witness witness;
  const std::vector<Message> messages = list_messages(plan);
  if (finding.events.empty() || finding.setting.message >= messages.size()) return witness;
  const Memory memory(plan, messages[finding.setting.message], finding.setting.one_storage);
  if (!memory.fits()) return witness;
  SymbolicExecutor executor(plan, memory);
  History history(executor);
  Slice slice(plan, history);
  if (finding.kind == Finding::Kind::undecided) {
    for (size_t at = 0; at < finding.events.size(); ++at)
      slice.add_culprit(finding.events[at], std::string(1, char('A' + at)));
    slice.finish(witness);
    return witness;
  }
  Choices choices(finding.setting.choices);
  const bool ends = finding.kind == Finding::Kind::race || finding.kind == Finding::Kind::value;
  executor.run(ends ? launches_of(finding) : finding.setting.launches, choices, history);
  if (!history.complete()) return witness;
  switch (finding.kind) {
    case Finding::Kind::race:
      explain_race(history, finding, slice, witness);
      break;
    case Finding::Kind::value:
      explain_value(history, finding, slice, witness);
      break;
    default:
      explain_deadlock(history, finding, slice, witness);
  }
  slice.finish(witness);
  return witness;
}

std::string render(const Witness& witness) {
  if (witness.events.empty() && witness.because.empty()) return {};
  std::string text;
  for (const std::string& remedy : witness.remedies) text += "  would order them: " + remedy + "\n";
  // A single event is the operation that the finding quotes.
  const size_t events = witness.events.size() == 1 ? 0 : witness.events.size();
  if (events) text += "  counter-example:\n";
  size_t agent = 0, line = 0;
  for (uint32_t at = 0; at < events; ++at) {
    agent = std::max(agent, agent_of(witness.events[at]).size());
    line = std::max(line, line_of(witness.events[at]).size());
  }
  for (uint32_t at = 0; at < events; ++at) {
    const WitnessEvent& event = witness.events[at];
    const bool missing = event.part == WitnessEvent::Part::missing;
    text += "   " + padded(event.mark, 2) + padded(number(at + 1), 3) + "launch " + number(event.launch + 1) +
            "  " + padded(agent_of(event), agent) + "  " + padded(line_of(event), line) + "  " +
            (missing ? "never: " : "") + event.text;
    if (const std::string behind = causes_of(witness, at); !behind.empty() && !missing)
      text += "  (" + behind + ")";
    text += '\n';
  }
  if (witness.left_out) text += "    and " + count(witness.left_out, "more event") + "\n";
  for (const std::string& sentence : witness.because) text += "  " + sentence + "\n";
  return text;
}

}  // namespace chorale
