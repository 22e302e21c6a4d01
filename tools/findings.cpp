#include "tools/findings.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "chorale/adversary.hpp"
#include "chorale/compile.hpp"
#include "chorale/finding.hpp"
#include "chorale/renderer.hpp"
#include "tools/programs.hpp"
#include "tools/witness_trace.hpp"
#include "tools/words.hpp"

namespace chorale::tools {
std::vector<Explained> explain_all(const Plan& plan, const Diagnostics& diagnostics) {
  std::vector<Explained> all;
  for (const Diagnostic& diagnostic : diagnostics) all.push_back({diagnostic, {}, {}});
  auto at =
      std::find_if(all.begin(), all.end(), [](const Explained& of) { return is_proof(of.diagnostic.check); });
  if (at == all.end()) return all;
  for (Finding& finding : prove_again(plan, diagnostics)) {
    if (at == all.end() || at->diagnostic.check != finding.proof) break;
    at->witness = explain(plan, finding);
    at->finding = std::move(finding);
    ++at;
  }
  return all;
}

std::string allowing(const Diagnostics& diagnostics, const std::vector<std::string>& allow) {
  std::vector<std::string> proofs;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!is_proof(diagnostic.check)) {
      if (std::find(allow.begin(), allow.end(), diagnostic.check) == allow.end()) return "";
      return "correct it: --allow " + diagnostic.check +
             " has no effect, because only proofs can be left out";
    }
    if (std::find(proofs.begin(), proofs.end(), diagnostic.check) == proofs.end())
      proofs.push_back(diagnostic.check);
  }
  std::string options;
  for (const std::string& proof : proofs) options += " --allow " + proof;
  return "to run it anyway:" + options;
}

namespace {

/// Holds the result of the search. A verdict other than ok is one that the finding predicts.
struct Reproduction {
  uint64_t schedules = 0;  ///< the number of schedules that were tried
  Verdict verdict;         ///< the verdict of the last schedule
  bool out_of_place = false;
};

constexpr uint64_t max_steps = uint64_t(1) << 21, max_steps_of_all = uint64_t(1) << 24;

bool expected(Finding::Kind found, Verdict::Kind seen) {
  switch (seen) {
    case Verdict::Kind::deadlock:
      return found == Finding::Kind::cycle || found == Finding::Kind::unanswered;
    case Verdict::Kind::wrong_result:
    case Verdict::Kind::overwrite_seen:
    case Verdict::Kind::late_write:
      return found == Finding::Kind::race || found == Finding::Kind::value;
    default:
      return false;
  }
}

/// Tries schedules of the adversarial machine with seeds 0, 1, ..., as `chorale run --adversarial` does. It
/// tries fewer than `schedules` if the plan's schedules are long. How many depends only on the plan.
Reproduction reproduce(const Plan& plan, const Finding& finding, uint64_t schedules) {
  Reproduction outcome;
  if (finding.kind == Finding::Kind::undecided) return outcome;
  outcome.out_of_place = plan.inplace && !finding.setting.one_storage;
  Adversary adversary(plan,
                      {.in_place = plan.inplace && finding.setting.one_storage, .max_steps = max_steps});
  uint64_t steps = 0;
  for (uint64_t seed = 0; seed < schedules && steps < max_steps_of_all; ++seed) {
    const Verdict verdict = adversary.run(seed);
    steps += verdict.steps;
    ++outcome.schedules;
    if (verdict.kind == Verdict::Kind::refused) break;
    if (!expected(finding.kind, verdict.kind)) continue;
    outcome.verdict = verdict;
    break;
  }
  return outcome;
}

/// Limits how many findings that say the same about the same lines are printed. A program often does the same
/// on every rank.
constexpr uint64_t most_alike = 3;

/// Returns a key that a finding shares with the findings that it makes superfluous. It is empty if the
/// finding has no line, because then it is unique.
std::string kind_of(const Plan& plan, const Diagnostic& finding) {
  const SourceLine line = author_line(plan, finding.line, finding.at);
  if (!line.line) return {};
  std::string kind = line.file + ":" + std::to_string(line.line) + ' ' + finding.check;
  for (const Note& note : finding.notes)
    kind += ' ' + std::to_string(author_line(plan, note.line, note.at).line);
  return kind;
}

/// Returns whether a second copy of the scratch mends a finding, and then all of its proof.
bool needs_double_scratch(const Explained& of) {
  return std::ranges::any_of(of.witness.remedies, [](const std::string& remedy) {
    return remedy.starts_with("use_double_scratch_buffer");
  });
}

void print(const Plan& plan, const std::vector<Explained>& all, const std::string& severity = "error") {
  std::cout.flush();
  Renderer each(plan);
  std::map<std::string, uint64_t> seen;
  std::map<std::string, uint64_t> left_out;  // by line and check
  uint64_t of_scratch = 0;
  for (const Explained& of : all) {
    if (needs_double_scratch(of) && of_scratch++) continue;
    const std::string kind = kind_of(plan, of.diagnostic);
    if (kind.empty() || ++seen[kind] <= most_alike) {
      std::cerr << each(of.diagnostic, severity) << render(of.witness);
      continue;
    }
    const SourceLine line = author_line(plan, of.diagnostic.line, of.diagnostic.at);
    ++left_out[line.file + ":" + std::to_string(line.line) + ": note: [" + of.diagnostic.check + "]"];
  }
  for (const auto& [what, times] : left_out)
    std::cerr << what << " is found here " << count(times, "more time") << ", alike\n";
  if (of_scratch > 1) {
    std::cerr << "note: use_double_scratch_buffer also mends " << count(of_scratch - 1, "more finding")
              << " of [replay]\n";
  }
}

/// Says which proofs a finding of a check hides.
void tell_hidden(const Diagnostics& diagnostics) {
  if (diagnostics.front().check == "pairing")
    std::cerr << "note: deadlocks, races and the result are checked only when [pairing] finds nothing\n";
}

/// Prints the first wrong output of a plan with races, unless an output is wrong however they are mended. The
/// races hide it, because a race often is the reason.
/// \param allow  proofs that the user leaves out
void tell_result(const Plan& plan, const std::vector<Explained>& all, std::vector<std::string> allow) {
  const auto found = [&](std::string_view proof) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Explained& of) { return of.finding && of.finding->proof == proof; });
  };
  if (!found("races") || found("values")) return;
  // Without the proof of races, the proof of values takes the order of one execution.
  allow.insert(allow.end(), {"races", "replay"});
  const std::vector<Finding> findings = prove_plan(plan, allow).findings;
  if (findings.empty() || findings.front().proof != "values") return;
  const auto told = std::find_if(all.begin(), all.end(),
                                 [](const Explained& of) { return !of.witness.wrong_order.empty(); });
  std::cerr << "note: "
            << (told == all.end() ? "in one order of these accesses the result is wrong too"
                                  : "the result is wrong if " + told->witness.wrong_order)
            << "; it may be right once they are ordered:\n"
            << Renderer(plan)(findings.front().diagnostic, "note");
}

}  // namespace

bool report(const Plan& plan, const Diagnostics& diagnostics) {
  if (diagnostics.empty()) return false;
  print(plan, explain_all(plan, diagnostics));
  tell_hidden(diagnostics);
  std::cerr << count(diagnostics.size(), "error") << '\n';
  return true;
}

void Telling::declare(CLI::App& app) {
  app.add_option("--sarif", sarif_file_, "Write the findings as SARIF, for editors and CI")
      ->type_name("FILE");
  app.add_option("--witness", witness_file_, "Write the first counter-example as a trace, for Perfetto")
      ->type_name("FILE");
  app.add_option("--shrink", shrunk_file_,
                 "Write a plan of fewer operations in which the first finding of a proof is still found")
      ->type_name("FILE");
  app.add_option("--schedules", schedules_,
                 "Number of schedules to try on the adversarial machine, to find one that shows a proof's "
                 "finding on the CPU; default 100, 0 for none")
      ->transform(whole_number(0, uint64_t(1) << 40, "0 to 2^40"))
      ->type_name("N");
}

bool Telling::tell(const Plan& plan, const std::string& path, const std::string& run,
                   const Diagnostics& diagnostics, const std::vector<std::string>& allow,
                   std::vector<Explained>* told) {
  if (diagnostics.empty()) return false;
  const std::vector<Explained> all = explain_all(plan, diagnostics);
  if (told) *told = all;
  print(plan, all);
  tell_hidden(diagnostics);
  tell_result(plan, all, allow);
  if (shrinks()) tell_shrunk(plan, all);
  tell_seed(plan, run, all);
  std::cerr << count(diagnostics.size(), "error") << '\n';
  if (!sarif_file_.empty()) sarif_.add(plan, path, all, "error");
  const auto first =
      std::find_if(all.begin(), all.end(), [](const Explained& of) { return !of.witness.events.empty(); });
  if (!witness_file_.empty() && trace_.empty() && first != all.end()) trace_ = trace_of(first->witness);
  return true;
}

void Telling::warn(const Plan& plan, const std::string& path, const Diagnostics& warnings) {
  const std::vector<Explained> all = explain_all(plan, warnings);
  print(plan, all, "warning");
  if (!sarif_file_.empty()) sarif_.add(plan, path, all, "warning");
}

/// Prints a seed that shows a finding. One seed is enough, because all findings of a plan come from one
/// proof.
void Telling::tell_seed(const Plan& plan, const std::string& run, const std::vector<Explained>& all) const {
  const auto first = std::find_if(all.begin(), all.end(), [](const Explained& of) { return of.finding; });
  if (first == all.end() || first->finding->kind == Finding::Kind::undecided || !schedules_) return;
  if (is_of_one_instance({all[0].diagnostic})) {
    // A seed of the plan of one instance does not show it in the plan that runs.
    std::cerr << "note: to look for it on the CPU: chorale run " << run << " --adversarial --allow "
              << all_proofs << '\n';
    return;
  }
  Reproduction found;
  try {
    found = reproduce(plan, *first->finding, schedules_);
  } catch (const std::exception& error) {
    // The finding holds even if the machine cannot run the plan.
    std::cerr << "note: the adversarial machine cannot run this plan: " << error.what() << '\n';
    return;
  }
  if (found.verdict.ok()) {
    std::cerr << "note: none of " << count(found.schedules, "schedule")
              << " of the adversarial machine shows it\n";
    return;
  }
  std::cerr << "note: to see it on the CPU: chorale run " << run << " --adversarial --seed "
            << found.verdict.seed << " --schedules 1" << (found.out_of_place ? " --out-of-place" : "")
            << " --allow " << all_proofs << "\n  " << found.verdict.text << '\n';
  if (found.verdict.kind == Verdict::Kind::overwrite_seen)
    std::cerr
        << "  that is, it was in a buffer before the launch, or the application wrote it there after the "
           "launch\n";
}

void Telling::tell_shrunk(const Plan& plan, const std::vector<Explained>& all) const {
  const auto first = std::find_if(all.begin(), all.end(), [](const Explained& of) { return of.finding; });
  if (first == all.end() || first->finding->events.empty()) return;
  const Shrunk shrunk = shrink(plan, *first->finding);
  write_plan(shrunk_file_, shrunk.plan);
  // The outputs of such a plan are no longer correct, and the checks would report that first.
  const bool unfinished = first->finding->proof == "replay";
  if (!first->finding->diagnostic.at) {
    std::cerr << "note: the plan in " << (shrunk_file_ == "-" ? "standard output" : shrunk_file_)
              << " has all operations, because the finding is that one is missing\n";
    return;
  }
  std::cerr << "note: the plan in " << (shrunk_file_ == "-" ? "standard output" : shrunk_file_) << " has "
            << operations(shrunk.plan) << " of the " << count(operations(plan), "operation")
            << ", and the same is found there" << (unfinished ? " with --allow values" : "") << '\n'
            << render(explain(shrunk.plan, shrunk.finding));
}

void Telling::finish() const {
  if (!sarif_file_.empty()) write_output(sarif_file_, sarif_.text());
  if (witness_file_.empty()) return;
  if (!trace_.empty()) return write_output(witness_file_, trace_);
  std::cerr << "note: there is no counter-example, so " << witness_file_ << " was not written\n";
}

std::string words_to_run(const std::string& what, const std::string& name,
                         const dsl::Parameters::Settings& settings) {
  std::vector<std::string> words = {what};
  if (!name.empty()) words.insert(words.end(), {"--name", name});
  for (const auto& [key, value] : settings) words.insert(words.end(), {"--set", key + "=" + value});
  return shell_line(words);
}

}  // namespace chorale::tools
