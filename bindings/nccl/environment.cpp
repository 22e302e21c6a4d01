#include "environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace chorale::nccl {
namespace {

constexpr auto honoured = std::to_array<std::string_view>({
#define CHORALE_NCCL_HONOURED(name) #name,
#include "variables.def"
});

constexpr auto counterparts = std::to_array<std::pair<std::string_view, std::string_view>>({
#define CHORALE_NCCL_COUNTERPART(name, setting) {#name, #setting},
#include "variables.def"
});

}  // namespace

std::vector<std::string> lines_about_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("NCCL_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  std::sort(names.begin(), names.end());
  std::vector<std::string> lines;
  std::string others;
  for (const std::string& name : names) {
    if (std::find(honoured.begin(), honoured.end(), name) != honoured.end()) continue;
    const auto counterpart = std::find_if(counterparts.begin(), counterparts.end(),
                                          [&](const auto& pair) { return pair.first == name; });
    if (counterpart != counterparts.end()) {
      lines.push_back(
          fmt::format("{} has no effect on Chorale; {} is the setting for it", name, counterpart->second));
    } else {
      others += (others.empty() ? "" : ", ") + name;
    }
  }
  if (!others.empty()) lines.push_back("without effect on Chorale: " + others);
  return lines;
}

}  // namespace chorale::nccl
