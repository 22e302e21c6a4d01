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

namespace {

/// Returns the number of a variable; 0 if it is not set or is no number above 0, which NCCL ignores too.
uint32_t number_above_0(const char* name) {
  const char* const value = std::getenv(name);
  const long long number = value ? std::strtoll(value, nullptr, 0) : 0;
  return uint32_t(std::clamp<long long>(number, 0, UINT32_MAX));
}

}  // namespace

void limit_blocks(Config& config, uint32_t max_ctas) {
  const auto limit = [&](uint32_t most, const char* from) {
    if (most == 0 || (config.max_blocks.value != 0 && config.max_blocks.value <= most)) return;
    config.max_blocks = most;
    config.max_blocks.from = from;
  };
  const uint32_t by_variable = number_above_0("NCCL_MAX_CTAS");
  by_variable != 0 ? limit(by_variable, "NCCL_MAX_CTAS") : limit(max_ctas, "config.maxCTAs");
  limit(number_above_0("NCCL_MAX_NCHANNELS"), "NCCL_MAX_NCHANNELS");
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
