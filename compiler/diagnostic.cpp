// Findings as text, in the manner of compilers.

#include "chorale/diagnostic.hpp"

#include "chorale/json.hpp"

namespace chorale {
namespace {

/// The operation at a place; null if the plan has none there.
const Op* find(const Plan& plan, const OpPlace& at) {
  if (at.rank >= plan.gpus.size()) return nullptr;
  const Gpu& gpu = plan.gpus[at.rank];
  if (at.threadblock >= gpu.threadblocks.size()) return nullptr;
  const std::vector<Op>& ops = gpu.threadblocks[at.threadblock].ops;
  return at.op < ops.size() ? &ops[at.op] : nullptr;
}

/// The author's line, that of the operation, or the name of the plan.
std::string place(const Plan& plan, SourceLine line, const std::optional<OpPlace>& at) {
  const Op* op = at ? find(plan, *at) : nullptr;
  if (!line.line && op && op->at <= plan.source.size()) line = plan.line_of(*op);
  if (line.line) return line.file + ":" + std::to_string(line.line);
  return plan.name.empty() ? "plan" : plan.name;
}

std::string quote(const Plan& plan, const std::optional<OpPlace>& at) {
  const Op* op = at ? find(plan, *at) : nullptr;
  if (!op) return {};
  return "  rank " + std::to_string(at->rank) + ", thread block " + std::to_string(at->threadblock) +
         ", op " + std::to_string(at->op) + ": " +
         write(plan, plan.gpus[at->rank].threadblocks[at->threadblock], *op, at->rank) + "\n";
}

}  // namespace

std::string render(const Plan& plan, const Diagnostic& finding) {
  std::string text = place(plan, finding.line, finding.at) + ": error: " + finding.text + " [" +
                     finding.check + "]\n" + quote(plan, finding.at);
  for (const Note& note : finding.notes) {
    text += place(plan, note.line, note.at) + ": note: " + note.text + "\n" + quote(plan, note.at);
  }
  if (!finding.help.empty()) text += "help: " + finding.help + "\n";
  return text;
}

std::string render(const Plan& plan, const Diagnostics& findings) {
  if (findings.empty()) return {};
  std::string text;
  for (const Diagnostic& finding : findings) text += render(plan, finding);
  return text + (findings.size() == 1 ? "1 error\n" : std::to_string(findings.size()) + " errors\n");
}

}  // namespace chorale
