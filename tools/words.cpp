#include "tools/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "chorale/scratch.hpp"
#include "tools/command.hpp"

namespace chorale::tools {

std::string author_line(const Plan& plan, const Op& op) {
  if (plan.first_at(op) > plan.source.size()) return "?";
  const SourceLine line = plan.line_of(op);
  return line.line ? line.file + ":" + std::to_string(line.line) : "";
}

uint64_t operations(const Plan& plan) {
  uint64_t all = 0;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) all += block.ops.size();
  }
  return all;
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

std::string line_words(const SourceLine& line) {
  return line.line == 0 ? "-" : line.file + ":" + std::to_string(line.line);
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, size_t numbers) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      line += column < numbers ? fmt::format("  {:>{}}", row[column], widths[column])
                               : fmt::format("  {:<{}}", row[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace chorale::tools
