/// \file
/// default_plans() lists the plans that are used when no table has an entry.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/tuned_plans.hpp"

namespace chorale {

/// Holds a plan that some message may have by default.
struct DefaultPlan {
  enum class For : uint8_t {
    this_machine,
    gpus,       ///< this machine has none
    any_order,  ///< the machine is for plans that add in the order of the ranks
  };

  /// Returns the name of the plan.
  std::string name() const { return std::string(program).append(variant); }
  /// Returns whether it is a default for a message of this size. It may lack a file.
  bool is_for(uint64_t bytes) const { return whom == For::this_machine && least <= bytes && bytes <= most; }

  std::string_view program, variant;      ///< live as long as the process
  uint64_t least = 0, most = UINT64_MAX;  ///< the bytes of messages; no message if least is above most
  For whom = For::this_machine;
  bool needs_file = true;  ///< false for the name of a program, which accepts any number of ranks
};

/// Returns the default plans of a collective for all sizes. Of those for one size, the probably fastest plan
/// comes first. Not all of them are shipped for every number of ranks. The sizes are the bytes of the input,
/// or for an all-gather of the output, as in tables. It returns nothing for an unknown collective.
std::vector<DefaultPlan> default_plans(const TunedFor& machine, const std::string& collective);

/// Throws for a collective without default plans.
/// \throws UsageError
[[noreturn]] void throw_no_default(const std::string& collective);

}  // namespace chorale
