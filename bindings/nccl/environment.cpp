#include "environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "outcome.hpp"

namespace chorale::nccl {
namespace {

enum class Effect { here, refused, counterpart, without };

struct Row {
  std::string_view name;
  Effect effect;
  std::string_view setting, reason;
};

constexpr auto rows = std::to_array<Row>({
#define CHORALE_NCCL_HONOURED(name, meaning) {#name, Effect::here, "", ""},
#define CHORALE_NCCL_REFUSED(name, meaning) {#name, Effect::refused, "", meaning},
#define CHORALE_NCCL_COUNTERPART(name, setting, meaning) {#name, Effect::counterpart, #setting, ""},
#define CHORALE_NCCL_WITHOUT(name, reason) {#name, Effect::without, "", reason},
#include "variables.def"
});

/// Returns the names of NCCL's variables that are set.
std::vector<std::string> names_in_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("NCCL_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> lines_about_environment() {
  std::vector<std::string> lines;
  std::string others;
  for (const std::string& name : names_in_environment()) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return one.name == name; });
    if (row == rows.end()) {
      others += (others.empty() ? "" : ", ") + name;
      continue;
    }
    switch (row->effect) {
      case Effect::here:
      case Effect::refused:
        break;
      case Effect::counterpart:
        lines.push_back(
            fmt::format("{} has no effect on Chorale; {} is the setting for it", name, row->setting));
        break;
      case Effect::without:
        lines.push_back(fmt::format("{} has no effect on Chorale: {}", name, row->reason));
        break;
    }
  }
  if (!others.empty()) lines.push_back("without effect on Chorale: " + others);
  return lines;
}

void check_environment_of_gpus() {
  for (const Row& row : rows) {
    if (row.effect != Effect::refused) continue;
    const char* const value = std::getenv(std::string(row.name).c_str());
    if (!value || std::strtol(value, nullptr, 0) == 0) continue;
    throw CallError(ncclInvalidUsage, fmt::format("{} is '{}', but {}. Unset it, or use NCCL itself",
                                                  row.name, value, row.reason));
  }
}

std::optional<bool> blocking_in_environment() {
  const char* const value = std::getenv("NCCL_COMM_BLOCKING");
  if (!value || !*value) return std::nullopt;
  const std::string_view text = value;
  if (text != "0" && text != "1")
    throw CallError(ncclInvalidUsage, fmt::format("NCCL_COMM_BLOCKING is '{}', but must be 0 or 1", text));
  return text == "1";
}

}  // namespace chorale::nccl
