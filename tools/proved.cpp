#include "tools/proved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "chorale/proof.hpp"
#include "chorale/schedule/concrete.hpp"
#include "chorale/schedule/schedule.hpp"
#include "chorale/target_checks.hpp"
#include "tools/command.hpp"
#include "tools/oracle.hpp"

namespace chorale::tools {
namespace {

/// Names the claims, in the order of `proof_names`.
constexpr const char* claims[] = {"one order of events", "no deadlock", "no races", "the result",
                                  "launches in a row"};
static_assert(std::size(claims) == std::size(proof_names), "a proof of passes.def has no claim here");

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns true if the proof is bounded. Only a proof about thread blocks that may compete can be bounded, so
/// it repeats the proof for such a plan alone.
bool is_bounded(const Plan& plan, const std::vector<std::string>& allow) {
  if (!plan.extension.bounded_proof && !has(allow, "decidable")) return false;
  return prove_plan(plan, allow).facts.bounded;
}

std::string sizes(const Plan& plan, Target target) {
  const uint64_t most = std::min(plan.max_message_size, largest_message(plan, target));
  std::string words = "messages of every size";
  if (plan.min_message_size) words = "messages of " + format_bytes(plan.min_message_size) + " bytes and more";
  if (target != Target::chorale && most < UINT64_MAX)
    words += fmt::format(", and {} runs up to {} bytes", target_names[size_t(target)], format_bytes(most));
  return words;
}

std::string schedule_words(const schedule::Schedule& schedule) {
  std::vector<std::string> ranks;
  for (const uint32_t number : schedule.ranks) ranks.push_back(std::to_string(number));
  const bool laid_out = !schedule.layout.empty();
  std::string words = fmt::format(
      "proved: no deadlock, no races, {}, runs in a row; for {} rank{}, the parameters as they are in the "
      "schedule, and any mover{}\n",
      laid_out ? "the result of the layout" : "whole outputs", join(ranks),
      schedule.ranks == std::vector<uint32_t>{1} ? "" : "s",
      schedule::check(schedule, {}, schedule::Mover::plan).empty() ? "" : " but plan");
  if (!laid_out)
    words += "not proved: the result, because the schedule has no layout; of an all-gather it is proved\n";
  return words;
}

}  // namespace

std::string proved_words(const Plan& plan, Target target, const std::vector<std::string>& allow) {
  std::string words;
  if (plan.extension.schedule) words = schedule_words(*plan.extension.schedule);
  if (plan.gpus.empty()) return words;
  if (!wants_proofs(allow)) return words + "not proved: anything, because --allow leaves all proofs out\n";
  const std::string unknown = unknown_result(plan);
  std::vector<std::string> proved, left_out;
  for (size_t which = 0; which < std::size(claims); ++which) {
    if (has(allow, proof_names[which])) {
      left_out.push_back(std::string(proof_names[which]));
    } else if (proof_names[which] != "values") {
      proved.push_back(claims[which]);
    } else if (unknown.empty()) {
      proved.push_back(fmt::format("{} of {}", claims[which], plan.collective));
    }
  }
  words += fmt::format("proved{}: {}; for {}{}\n", target == Target::chorale ? "" : " for Chorale's executor",
                       join(proved), sizes(plan, target),
                       is_bounded(plan, allow)
                           ? "; bounded: thread blocks compete, and only some of the orders were tried"
                           : "");
  if (!left_out.empty()) words += "not proved: " + join(left_out) + ", because --allow leaves it out\n";
  if (!unknown.empty() && !has(allow, "values")) words += "not proved: the result, because " + unknown + "\n";
  return words;
}

}  // namespace chorale::tools
