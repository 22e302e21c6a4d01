#pragma once
/// \file
/// The checks of a target find what its executor cannot hold or does not run correctly.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"
#include "chorale/target.hpp"

namespace chorale {

/// Describes a check that finds what a target's executor cannot hold or does not run correctly.
struct TargetCheck {
  std::string_view name, summary;
};

/// Returns the checks of a target, in the order in which they run. The target `chorale` has none.
std::span<const TargetCheck> target_checks(Target);

/// Returns the size in bytes of the largest message for which a plan without findings is correct on the
/// target. Larger messages have offsets that the target cannot hold. If the plan itself has a smaller limit,
/// returns that.
uint64_t largest_message(const Plan&, Target);

/// Runs the checks of a target on a plan that has no other findings, except the checks named in `allow`. They
/// do not depend on each other, so all findings are reported, unlike those of check(Plan).
/// \throws std::invalid_argument if `allow` has a name that is no check of this target, no proof, and no
///   warning that the plan may have
Diagnostics check(const Plan&, Target, const std::vector<std::string>& allow = {});

}  // namespace chorale
