// This file explains an output with a wrong value. It shows the operations that its value passed through, the
// last ones first.

#include <algorithm>
#include <deque>
#include <set>

#include "compiler/plan/report.hpp"
#include "explain.hpp"

namespace chorale::proof {
namespace {

constexpr uint64_t most_addends = most_told;

/// Lists addends one after the other. Only this function expands addends that occur several times, because a
/// wrong plan may have more of them than memory holds.
std::string list(const std::vector<Addend>& addends) {
  std::string text;
  uint64_t told = 0, more = 0;
  for (const Addend& of : addends) {
    const uint64_t here = std::min(of.times, most_addends - told);
    for (uint64_t time = 0; time < here; ++time) text += (text.empty() ? "" : ", ") + of.words;
    told += here;
    more += std::min(of.times - here, ~uint64_t{0} - more);
  }
  if (more) text += " and " + number(more) + " more";
  return addends.empty() ? "nothing" : text;
}

}  // namespace

void explain_value(const History& history, const Finding& finding, Slice& slice, Witness& witness) {
  const ProofEvent& output = finding.events[0];
  // Findings that compare outputs with each other have no addends.
  if (!finding.expected.empty() || !finding.held.empty()) {
    witness.because.push_back("it should hold " + list(finding.expected));
    witness.because.push_back("it holds " + list(finding.held));
  }
  const bool written = output.who != ProofEvent::Who::application;
  if (finding.events.size() > 1) {
    ProofEvent fault = finding.events[1];
    fault.segment = History::any;
    const uint32_t node = history.find(fault);
    const std::string mark = written ? "B" : "A";
    if (node == History::none)
      slice.add_culprit(fault, mark);
    else
      slice.add_culprit(node, fault, mark);
  }
  if (!written) return;
  const Memory& memory = history.executor().memory();
  Range range = memory.buffer(output.buffer_rank, output.buffer);
  const uint64_t chunk = memory.message().chunk;
  range.end = range.begin + output.end * chunk;
  range.begin += output.begin * chunk;
  uint32_t last = History::none;
  const uint32_t first = memory.cell(range, 0);
  for (uint32_t cell = first; cell < first + memory.count(range) && last == History::none; ++cell) {
    const uint32_t writer = history.writer(cell);
    if (writer != History::none && history.place(history.nodes()[writer]) == output.at) last = writer;
  }
  if (last == History::none) return slice.add_culprit(output, "A");
  slice.add_culprit(last, output, "A");
  std::set<uint32_t> seen{last};
  std::deque<uint32_t> open{last};
  while (!open.empty() && seen.size() < 4 * Witness::most_events) {
    const uint32_t node = open.front();
    open.pop_front();
    for (const uint32_t source : history.sources(node)) {
      slice.add_path({source, node});
      if (seen.insert(source).second) open.push_back(source);
    }
  }
}

}  // namespace chorale::proof
