#pragma once
/// \file
/// A target is the executor that a plan is compiled for.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

enum class Target : uint8_t {
  chorale,  ///< our executor; MSCCL++'s executor also loads the plan if it uses only features of MSCCL++
  mscclpp,  ///< MSCCL++'s executor; the plan uses only what that one runs correctly
};
/// Holds the words of the command line, by Target.
inline constexpr std::string_view target_names[] = {"chorale", "mscclpp"};

/// Names a check of what a target's executor can hold and runs correctly.
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
