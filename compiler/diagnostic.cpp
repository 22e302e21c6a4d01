// Findings as text, in the manner of compilers.

#include "chorale/diagnostic.hpp"

#include <algorithm>

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

/// The author's line, or the name of the plan.
std::string place(const Plan& plan, const SourceLine& known, const std::optional<OpPlace>& at) {
  const SourceLine line = author_line(plan, known, at);
  if (line.line) return line.file + ":" + std::to_string(line.line);
  return plan.name.empty() ? "plan" : plan.name;
}

/// Where operation `wanted` of [from, to) is in the lists of a plan file: a pipeline holds its body.
std::string op_path(const std::vector<Op>& ops, size_t from, size_t to, size_t wanted) {
  for (size_t at = from, position = 0; at < to; ++position) {
    const size_t end = std::min<size_t>(at + 1 + ops[at].body, to);
    const std::string path = "/ops/" + std::to_string(position);
    if (wanted == at) return path;
    if (wanted < end) return path + op_path(ops, at + 1, end, wanted);
    at = end;
  }
  return {};
}

std::string json_path(const Plan& plan, const Diagnostic& finding) {
  if (!finding.at || !find(plan, *finding.at)) return finding.path;
  if (finding.path.empty() && author_line(plan, finding.line, finding.at).line) return {};
  const OpPlace& at = *finding.at;
  const std::vector<Op>& ops = plan.gpus[at.rank].threadblocks[at.threadblock].ops;
  return "/gpus/" + std::to_string(at.rank) + "/threadblocks/" + std::to_string(at.threadblock) +
         op_path(ops, 0, ops.size(), at.op) + (finding.path.empty() ? "" : "/" + finding.path);
}

std::string quote(const Plan& plan, const std::optional<OpPlace>& at) {
  const Op* op = at ? find(plan, *at) : nullptr;
  if (!op) return {};
  return "  rank " + std::to_string(at->rank) + ", thread block " + std::to_string(at->threadblock) +
         ", op " + std::to_string(at->op) + ": " +
         write(plan, plan.gpus[at->rank].threadblocks[at->threadblock], *op, at->rank) + "\n";
}

}  // namespace

SourceLine author_line(const Plan& plan, const SourceLine& line, const std::optional<OpPlace>& at) {
  const Op* op = at ? find(plan, *at) : nullptr;
  return !line.line && op && op->at <= plan.source.size() ? plan.line_of(*op) : line;
}

std::string render(const Plan& plan, const Diagnostic& finding, const std::string& severity) {
  std::string text = place(plan, finding.line, finding.at) + ": " + severity + ": " + finding.text + " [" +
                     finding.check + "]\n" + quote(plan, finding.at);
  if (const std::string path = json_path(plan, finding); !path.empty())
    text += "  in the plan: " + path + "\n";
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
