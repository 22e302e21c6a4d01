#include "tools/words.hpp"

#include <sstream>

#include "chorale/scratch.hpp"
#include "tools/command.hpp"

namespace chorale::tools {
namespace {

std::string text(uint64_t number) { return std::to_string(number); }

}  // namespace

std::string author_line(const Plan& plan, const Op& op) {
  if (plan.first_at(op) > plan.source.size()) return "?";
  const SourceLine line = plan.line_of(op);
  return line.line ? line.file + ":" + text(line.line) : "";
}

std::string headline(const Plan& plan) {
  return plan.collective + " of " + count(plan.ranks(), "rank") +
         (plan.protocol == Protocol::LL ? ", LL" : ", Simple") + (plan.inplace ? ", in place" : "");
}

std::string message_words(const Plan& plan) {
  const std::string least = "messages of " + format_bytes(plan.min_message_size) + " bytes";
  if (plan.max_message_size == UINT64_MAX) return least + " or more";
  return least + " to " + format_bytes(plan.max_message_size) + " bytes";
}

std::string scratch_words(const Plan& plan, uint64_t window) {
  ScratchFormula formula;
  try {
    formula = scratch_formula(plan, window);
  } catch (const UsageError& error) {
    return std::string("unknown: ") + error.what();
  }
  if (formula.per_message_byte == 0) return "none";
  std::ostringstream words;
  words.precision(4);
  words << formula.per_message_byte << " x message";
  if (formula.most != UINT64_MAX) words << " up to " << format_bytes(formula.most) << ", then in rounds";
  return words.str();
}

}  // namespace chorale::tools
