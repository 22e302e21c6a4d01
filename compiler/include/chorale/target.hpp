#pragma once
/// \file
/// For whose executor a plan is written.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/diagnostic.hpp"

namespace chorale {

enum class Target : uint8_t {
  chorale,  ///< our executor; within the means of MSCCL++'s a plan loads there as well
  mscclpp,  ///< MSCCL++'s executor: only what it runs rightly
};
/// By Target: the words of the command line.
inline constexpr std::string_view target_names[] = {"chorale", "mscclpp"};

/// A check of what the executor of a target holds and runs rightly.
struct TargetCheck {
  std::string_view name, summary;
};

/// The checks of a target, in the order in which they run; our own has none.
std::span<const TargetCheck> target_checks(Target);

/// The largest message of which a plan without findings is right there, in bytes: larger ones have offsets
/// that the target does not hold. What the plan itself names if it is less.
uint64_t largest_message(const Plan&, Target);

/// Runs the checks of a target on a plan without other findings, except those named in `allow`.
/// Unlike those of check(), they do not depend on each other: all findings are reported.
/// \throws std::invalid_argument if `allow` names no check of this target, no proof, and no warning that the
/// plan may have
Diagnostics check(const Plan&, Target, const std::vector<std::string>& allow = {});

}  // namespace chorale
