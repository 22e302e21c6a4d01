#include "tools/csv.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string in_quotes(const std::string& text) {
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string result = "\"";
  for (const char letter : text) result += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return result + "\"";
}

std::string word(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.is_string() ? in_quotes(value.get<std::string>()) : value.dump();
}

}  // namespace

std::string csv_head(const Json& row) {
  std::string head;
  for (const auto& [key, value] : row.items()) head += (head.empty() ? "" : ",") + key;
  return head + "\n";
}

std::string csv_text(const std::vector<Json>& rows) {
  std::string text;
  for (const Json& row : rows) {
    std::string line;
    for (const auto& [key, value] : row.items()) line += (line.empty() ? "" : ",") + word(value);
    if (text.empty()) text = csv_head(row);
    text += line + "\n";
  }
  return text;
}

}  // namespace chorale::tools
