#include "tools/profile_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace chorale::tools {

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
