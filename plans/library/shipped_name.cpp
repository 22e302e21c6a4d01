#include "chorale/shipped_name.hpp"

#include <algorithm>
#include <iterator>
#include <regex>

namespace chorale {
namespace {

/// `instances` of these are of each peer, and of the rank itself.
constexpr const char* in_instances_of_peers[] = {"allgather_by_peer", "alltoall_by_peer"};

bool is_program(const std::string& name) {
  const auto& all = dsl::programs();
  return std::any_of(all.begin(), all.end(),
                     [&](const dsl::RegisteredProgram& program) { return program.name == name; });
}

}  // namespace

ShippedName shipped_name(const std::string& name, int ranks) {
  ShippedName plan{name, {{"ranks", std::to_string(ranks)}}};
  static const std::regex form("(.+?)(_ordered)?(?:_b([1-9][0-9]{0,3}))?");
  std::smatch part;
  if (is_program(name) || !std::regex_match(name, part, form) || !is_program(part[1])) return plan;
  plan.program = part[1];
  if (part[2].matched) plan.settings["rank_order"] = "true";
  if (part[3].matched) {
    const bool of_peers = std::find(std::begin(in_instances_of_peers), std::end(in_instances_of_peers),
                                    plan.program) != std::end(in_instances_of_peers);
    const int blocks = std::stoi(part[3]);
    plan.settings["instances"] = std::to_string(of_peers ? std::max(1, blocks / ranks) : blocks);
  }
  return plan;
}

}  // namespace chorale
