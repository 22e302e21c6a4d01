#include "report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "chorale/compile.hpp"
#include "chorale/json_text.hpp"

namespace chorale::mutation {
namespace {

/// Lists the checks in the order in which they run.
constexpr const char* checks_in_order[] = {
#define CHORALE_CHECK(name, summary) #name,
#define CHORALE_PROOF(name, summary) #name,
#include "chorale/passes.def"
};

uint64_t total(const std::map<std::string, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [name, n] : counts) sum += n;
  return sum;
}

std::string cell(const std::map<std::string, uint64_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? "" : std::to_string(found->second);
}

}  // namespace

std::string name_of(const std::string& plan, const Mutant& mutant) {
  std::string text = fmt::format("{}: {} at rank {}, thread block {}, op {}", plan, mutant.of->name,
                                 mutant.at.rank, mutant.at.threadblock, mutant.at.op);
  if (!mutant.what.empty()) text += ", " + mutant.what;
  if (mutant.line.line) text += fmt::format(" ({}:{})", mutant.line.file, mutant.line.line);
  return text;
}

std::string json_line(const std::string& plan, const Mutant& mutant) {
  nlohmann::ordered_json line = {
      {"plan", plan},           {"operator", mutant.of->name},
      {"rank", mutant.at.rank}, {"threadblock", mutant.at.threadblock},
      {"op", mutant.at.op},
  };
  if (!mutant.what.empty()) line["what"] = mutant.what;
  if (mutant.line.line) line["at"] = mutant.line.file + ":" + std::to_string(mutant.line.line);
  line["fate"] = std::string(fate_names[size_t(mutant.fate)]);
  if (!mutant.by.empty()) line["by"] = mutant.by;
  if (mutant.fate == Fate::hole) line["seed"] = mutant.seed;
  if (!mutant.text.empty()) line["text"] = mutant.text;
  return json_text(line);
}

void Tally::add(const std::string& plan, const std::vector<Mutant>& mutants) {
  ++plans_;
  for (const Mutant& mutant : mutants) {
    Row& row = rows_[mutant.of];
    switch (mutant.fate) {
      case Fate::killed:
        ++row.killed[mutant.by];
        break;
      case Fate::survived:
        ++row.survived[mutant.by];
        if (!mutant.text.empty() && !told_[{mutant.of, mutant.by}]) {
          told_[{mutant.of, mutant.by}] = true;
          examples_.push_back(name_of(plan, mutant) + ": " + mutant.text);
        }
        break;
      case Fate::hole:
        ++row.holes;
        loud_.push_back(fmt::format("{}: no check finds it, but schedule {} fails: {}", name_of(plan, mutant),
                                    mutant.seed, mutant.text));
        break;
      case Fate::crashed:
        ++row.crashes;
        loud_.push_back(name_of(plan, mutant) + ": could not be judged: " + mutant.text);
        break;
    }
  }
}

uint64_t Tally::count(Fate fate) const {
  uint64_t n = 0;
  for (const auto& [of, row] : rows_) {
    n += fate == Fate::killed     ? total(row.killed)
         : fate == Fate::survived ? total(row.survived)
         : fate == Fate::hole     ? row.holes
                                  : row.crashes;
  }
  return n;
}

uint64_t Tally::count() const {
  return count(Fate::killed) + count(Fate::survived) + count(Fate::hole) + count(Fate::crashed);
}

std::string Tally::summary() const {
  const auto with_noun = [](uint64_t n, const char* noun) {
    return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
  };
  std::string text = fmt::format("{} of {}: {} killed, {} survived, {}", with_noun(count(), "mutant"),
                                 with_noun(plans_, "plan"), count(Fate::killed), count(Fate::survived),
                                 with_noun(count(Fate::hole), "hole"));
  if (count(Fate::crashed)) text += fmt::format(", {} not judged", count(Fate::crashed));
  return text;
}

std::string Tally::markdown(const std::vector<const Operator*>& operators, const std::string& command,
                            const std::string& commit) const {
  std::map<std::string, uint64_t> kills, reasons;
  for (const auto& [of, row] : rows_) {
    for (const auto& [check, n] : row.killed) kills[check] += n;
    for (const auto& [reason, n] : row.survived) reasons[reason] += n;
  }
  std::vector<std::string> columns;
  for (const char* check : checks_in_order) {
    if (kills.count(check)) columns.push_back(check);
  }
  std::string text =
      "# Mutants\n\nWritten by\n\n    " + command + "\n\nat " + commit + ".\n\n" + summary() + ".\n\n";
  text +=
      "Each operator makes one mistake at one place of a right plan. A mutant is *killed* if `chorale check` "
      "finds an error; the column\nnames the first check that finds one. Every other mutant runs under "
      "adversarial schedules. If a run fails, the checks have a *hole*.\nOtherwise the mutant *survives*, "
      "and "
      "the program finds the reason. Mutants that are equal to their plan, or to another mutant of\nit, do "
      "not "
      "count.\n\nThe columns in italics count the survivors by the reason why they are right:\n\n"
      "- *nothing*: the changed operation orders no two accesses that need an order.\n"
      "- *path*: other operations order the accesses that the mutant no longer orders.\n"
      "- *values*: every output is right, although some block accesses other memory or in another order.\n\n";
  std::string head = "| | operator | mistake | mutants |", rule = "| --: | :-- | :-- | --: |";
  for (const std::string& check : columns) head += " " + check + " |", rule += " --: |";
  for (const auto& [reason, n] : reasons) {
    head += " *" + (reason.empty() ? "survived" : reason) + "* |";
    rule += " --: |";
  }
  text += head + " holes |\n" + rule + " --: |\n";
  const auto line = [&](const std::string& front, const Row& row) {
    text += front + fmt::format(" {} |", total(row.killed) + total(row.survived) + row.holes + row.crashes);
    for (const std::string& check : columns) text += " " + cell(row.killed, check) + " |";
    for (const auto& [reason, n] : reasons) text += " " + cell(row.survived, reason) + " |";
    text += fmt::format(" {} |\n", row.holes + row.crashes);
  };
  Row all;
  for (const Operator* of : operators) {
    const auto found = rows_.find(of);
    const Row row = found == rows_.end() ? Row{} : found->second;
    line(fmt::format("| {} | `{}` | {} |", of->number, of->name, of->summary), row);
    all.holes += row.holes;
    all.crashes += row.crashes;
  }
  all.killed = kills;
  all.survived = reasons;
  line("| | **all** | |", all);
  if (!loud_.empty()) {
    text += "\n## Holes\n\n";
    for (const std::string& one : loud_) text += "- " + one + "\n";
  }
  if (!examples_.empty()) {
    text += "\n## Why mutants survive\n\nThis list has the first survivor for each operator and reason.\n\n";
    for (const std::string& one : examples_) text += "- " + one + "\n";
  }
  if (!left_out_.empty()) {
    text += "\n## Plans left out\n\n";
    for (const auto& [plan, why] : left_out_) text += "- " + plan + ": " + why + "\n";
  }
  return text;
}

}  // namespace chorale::mutation
