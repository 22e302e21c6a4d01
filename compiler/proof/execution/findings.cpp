#include "findings.hpp"

#include <algorithm>
#include <utility>

namespace chorale::proof {

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
  const SourceLine line = plan_.line_of(plan_.gpus[at.rank].threadblocks[at.threadblock].ops[at.op]);
  return line.line ? line.file + ":" + number(line.line)
                   : number(at.rank) + "." + number(at.threadblock) + "." + number(at.op);
}

bool Findings::news(ProofName proof, const OpPlace& at, const std::optional<OpPlace>& other,
                    const std::string& words) {
  return news(proof, line_of(at) + " " + (other ? line_of(*other) : words));
}

bool Findings::news(ProofName proof, const std::string& key) {
  std::vector<std::string>& said = said_[size_t(proof)];
  if (said.size() >= most || std::find(said.begin(), said.end(), key) != said.end()) return false;
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

std::vector<Finding> Findings::take() {
  for (std::vector<Finding>& list : found_) {
    if (!list.empty()) return std::move(list);
  }
  return {};
}

}  // namespace chorale::proof
