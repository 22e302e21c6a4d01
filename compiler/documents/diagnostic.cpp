// This file writes findings as text, in the way of compilers.

#include <algorithm>

#include "chorale/renderer.hpp"
#include "compiler/plan/lines.hpp"
#include "compiler/plan/report.hpp"

namespace chorale {
namespace {

/// Returns the author's line, or the author's file, or the name of the plan.
/// \param otherwise  the file of a note without an operation: that of its finding
std::string place(const Plan& plan, const SourceLine& known, const std::optional<OpPlace>& at,
                  const std::string& otherwise = {}) {
  const SourceLine line = author_line(plan, known, at);
  if (line.line) return line.file + ":" + std::to_string(line.line);
  if (!line.file.empty()) return line.file;
  if (!at && !otherwise.empty()) return otherwise;
  return plan.name.empty() ? "plan" : plan.name;
}

std::string quote(const Plan& plan, const std::optional<OpPlace>& at) {
  const Op* op = at ? find_op(plan, *at) : nullptr;
  if (!op) return {};
  return "  rank " + std::to_string(at->rank) + ", thread block " + std::to_string(at->threadblock) +
         ", op " + std::to_string(at->op) + ": " +
         op_words(plan.gpus[at->rank], plan.gpus[at->rank].threadblocks[at->threadblock], *op, most_told) +
         "\n";
}

}  // namespace

const std::vector<Renderer::Slot>& Renderer::slots_of(const OpPlace& at) {
  const auto [entry, first] = slots_.try_emplace({at.rank, at.threadblock});
  std::vector<Slot>& slots = entry->second;
  if (!first) return slots;
  const std::vector<Op>& ops = plan_.gpus[at.rank].threadblocks[at.threadblock].ops;
  struct List {
    uint32_t pipeline;
    size_t end;          ///< position after its last operation
    uint32_t count = 0;  ///< number of operations so far
  };
  std::vector<List> open = {{0, ops.size()}};
  for (size_t op = 0; op < ops.size(); ++op) {
    while (open.back().end == op) open.pop_back();
    List& list = open.back();
    slots.push_back({list.count++, list.pipeline});
    // A body that would be longer than its list ends with the list.
    const size_t end = std::min<size_t>(op + 1 + ops[op].body, list.end);
    if (end > op + 1) open.push_back({uint32_t(op + 1), end});
  }
  return slots;
}

std::string Renderer::json_path(const Diagnostic& finding) {
  if (!finding.at || !find_op(plan_, *finding.at)) return finding.path;
  if (finding.path.empty() && author_line(plan_, finding.line, finding.at).line) return {};
  const std::vector<Slot>& slots = slots_of(*finding.at);
  std::string path;
  for (uint32_t op = finding.at->op + 1; op; op = slots[op - 1].pipeline)
    path.insert(0, "/ops/" + std::to_string(slots[op - 1].position));
  return "/gpus/" + std::to_string(finding.at->rank) + "/threadblocks/" +
         std::to_string(finding.at->threadblock) + path + (finding.path.empty() ? "" : "/" + finding.path);
}

std::string Renderer::operator()(const Diagnostic& finding, const std::string& severity) {
  std::string text = place(plan_, finding.line, finding.at) + ": " + severity + ": " + finding.text + " [" +
                     finding.check + "]\n" + quote(plan_, finding.at);
  if (const std::string path = json_path(finding); !path.empty()) text += "  in the plan: " + path + "\n";
  const std::string file = author_line(plan_, finding.line, finding.at).file;
  for (const Note& note : finding.notes) {
    text += place(plan_, note.line, note.at, file) + ": note: " + note.text + "\n" + quote(plan_, note.at);
  }
  if (!finding.help.empty()) text += "help: " + finding.help + "\n";
  return text;
}

std::string render(const Plan& plan, const Diagnostic& finding, const std::string& severity) {
  return Renderer(plan)(finding, severity);
}

std::string render(const Plan& plan, const Diagnostics& findings) {
  if (findings.empty()) return {};
  Renderer each(plan);
  std::string text;
  for (const Diagnostic& finding : findings) text += each(finding);
  return text + (findings.size() == 1 ? "1 error\n" : std::to_string(findings.size()) + " errors\n");
}

std::string render_warnings(const Plan& plan, const Diagnostics& findings) {
  Renderer each(plan);
  std::string text;
  for (const Diagnostic& finding : findings) text += each(finding, "warning");
  return text;
}

}  // namespace chorale
