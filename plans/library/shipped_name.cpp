#include "chorale/shipped_name.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

namespace chorale {
namespace {

/// In these programs, `instances` counts the thread blocks per peer, and those for the rank itself.
constexpr const char* in_instances_of_peers[] = {"allgather_by_peer", "alltoall_by_peer"};

/// These programs have one thread block that gives orders, and `copiers` others.
constexpr const char* in_copiers[] = {"allgather_by_port", "alltoall_by_port"};

template <size_t N>
bool is_one_of(const char* const (&names)[N], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_program(const std::string& name) {
  const auto& all = dsl::programs();
  return std::any_of(all.begin(), all.end(),
                     [&](const dsl::RegisteredProgram& program) { return program.name == name; });
}

constexpr std::string_view ordered = "_ordered";

/// Removes "_b<blocks>" from the end of a name and returns the blocks: 1 to 9999, without leading zeros.
/// Returns nothing if the name does not end so.
std::optional<int> take_blocks(std::string& name) {
  const size_t mark = name.rfind("_b");
  if (mark == std::string::npos) return std::nullopt;
  const std::string digits = name.substr(mark + 2);
  const bool number =
      !digits.empty() && digits.size() <= 4 && digits[0] != '0' &&
      std::all_of(digits.begin(), digits.end(), [](char one) { return one >= '0' && one <= '9'; });
  if (!number) return std::nullopt;
  name.resize(mark);
  return std::stoi(digits);
}

}  // namespace

ShippedName shipped_name(const std::string& name, int ranks) {
  ShippedName plan{name, {{"ranks", std::to_string(ranks)}}};
  std::string program = name;
  const std::optional<int> blocks = take_blocks(program);
  const bool in_order = program.ends_with(ordered);
  if (in_order) program.resize(program.size() - ordered.size());
  if (is_program(name) || !is_program(program)) return plan;
  plan.program = program;
  if (in_order) plan.settings["rank_order"] = "true";
  if (blocks) {
    if (is_one_of(in_copiers, program)) {
      plan.settings["copiers"] = std::to_string(std::max(1, *blocks - 1));
    } else {
      const bool of_peers = is_one_of(in_instances_of_peers, program);
      plan.settings["instances"] = std::to_string(of_peers ? std::max(1, *blocks / ranks) : *blocks);
    }
  }
  return plan;
}

}  // namespace chorale
