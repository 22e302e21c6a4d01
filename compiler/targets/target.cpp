// This file holds the tables of the targets.

#include <algorithm>
#include <stdexcept>

#include "bounds.hpp"
#include "chorale/did_you_mean.hpp"
#include "chorale/finding.hpp"
#include "chorale/schedule/lint.hpp"
#include "chorale/target_checks.hpp"
#include "mscclpp/checks.hpp"

namespace chorale {
namespace {

using Run = void (*)(const Plan&, mscclpp::Finder&);

constexpr TargetCheck mscclpp_checks[] = {
#define CHORALE_CHECK(name, summary) {"mscclpp_" #name, summary},
#include "mscclpp/checks.def"
};

constexpr Run mscclpp_runs[] = {
#define CHORALE_CHECK(name, summary) mscclpp::name,
#include "mscclpp/checks.def"
};

/// Holds the checks that every plan has to pass.
constexpr std::string_view check_names[] = {
#define CHORALE_CHECK(name, summary) #name,
#include "chorale/passes.def"
};

}  // namespace

void mscclpp::Finder::add(std::optional<OpPlace> at, std::string text, std::string help, std::string path) {
  if (at) {
    const uint32_t line = plan_.gpus[at->rank].threadblocks[at->threadblock].ops[at->op].at;
    if (line && !known_.insert(line).second) return;
  }
  report_.add(at, std::move(text), std::move(help), std::move(path));
}

std::span<const TargetCheck> target_checks(Target target) {
  if (target == Target::mscclpp) return mscclpp_checks;
  return {};
}

uint64_t largest_message(const Plan& plan, Target target) {
  if (target != Target::mscclpp) return plan.max_message_size;
  return std::min(plan.max_message_size, mscclpp::largest_message(plan));
}

Diagnostics check(const Plan& plan, Target target, const std::vector<std::string>& allow) {
  const std::span<const TargetCheck> checks = target_checks(target);
  for (const std::string& name : allow) {
    std::vector<std::string_view> names;
    names.assign(std::begin(proof_names), std::end(proof_names));
    names.push_back(all_proofs);
    if (plan.extension.schedule)
      names.insert(names.end(), std::begin(schedule::warning_names), std::end(schedule::warning_names));
    for (const TargetCheck& check : checks) names.push_back(check.name);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (std::find(std::begin(check_names), std::end(check_names), name) != std::end(check_names)) {
      throw std::invalid_argument("the check '" + name +
                                  "' cannot be left out: no executor runs a plan that fails it");
    }
    throw std::invalid_argument("there is neither a proof nor a check of the target " +
                                std::string(target_names[size_t(target)]) + " named '" + name + "'" +
                                did_you_mean(name, names));
  }
  Diagnostics findings;
  for (size_t k = 0; k < checks.size(); ++k) {
    if (std::find(allow.begin(), allow.end(), checks[k].name) != allow.end()) continue;
    mscclpp::Finder find(plan, checks[k].name.data(), findings);
    mscclpp_runs[k](plan, find);
  }
  return findings;
}

const OpBounds& op_bounds(Target target) {
  // Our executor has no such bounds. But if MSCCL++ has the operations of our plan, it should be able to hold
  // them. Besides, longer lists gain nothing, because an operation costs little.
  static constexpr OpBounds ours{mscclpp::max_operands, mscclpp::max_channels, mscclpp::max_semaphores, true,
                                 true};
  // Their executor would run such chains, but their compiler does not make them.
  static constexpr OpBounds theirs{mscclpp::max_operands, mscclpp::max_channels, mscclpp::max_semaphores,
                                   false, false};
  return target == Target::mscclpp ? theirs : ours;
}

}  // namespace chorale
