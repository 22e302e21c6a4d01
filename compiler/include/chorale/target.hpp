#pragma once
/// \file
/// A target says for which executor a plan is written.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

enum class Target : uint8_t {
  chorale,  ///< our executor; MSCCL++'s loads the plan as well if it keeps within that one's means
  mscclpp,  ///< MSCCL++'s executor: only what it runs rightly
};
/// These are the words of the command line, by Target.
inline constexpr std::string_view target_names[] = {"chorale", "mscclpp"};

/// Names a check of what the executor of a target holds and runs rightly.
struct TargetCheck {
  std::string_view name, summary;
};

/// Returns the checks of a target, in the order in which they run. Our own target has none.
std::span<const TargetCheck> target_checks(Target);

/// Returns the size in bytes of the largest message for which a plan without findings is right on the target.
/// Larger messages have offsets that the target does not hold. If the plan itself names a smaller limit,
/// returns that.
uint64_t largest_message(const Plan&, Target);

/// Runs the checks of a target on a plan without other findings, except those named in `allow`. Unlike those
/// of check(), they do not depend on each other, so all findings are reported.
/// \throws std::invalid_argument if `allow` names no check of this target, no proof, and no warning that the
/// plan may have
Diagnostics check(const Plan&, Target, const std::vector<std::string>& allow = {});

}  // namespace chorale
