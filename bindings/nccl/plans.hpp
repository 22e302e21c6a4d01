#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "chorale/tuned_plans.hpp"
#include "chorale/world.hpp"

namespace chorale::nccl {

/// Returns the plans for a communicator: those of CHORALE_NCCL_PLANS, and the plans and tables of the
/// installation that this library belongs to. Collective over the ranks of the world.
/// \param max_blocks  the most thread blocks, 0: any number. The lowest limit of all ranks holds, as in NCCL
/// \throws CallError, on all ranks, if one rank cannot read its files, or if CHORALE_NCCL_PLANS does not name
///         the same plans on all ranks
TunedPlans plans_for(World& world, const std::string& backend, const std::string& device,
                     uint32_t max_blocks);

/// Describes what the log says about a call.
struct PlannedCall {
  std::string_view function;  ///< such as "ncclAllReduce"
  uint64_t bytes;
  std::string_view type;  ///< "" if the call only moves elements
  bool in_place;
};

/// Remembers which calls the log has described. It has one line for each function, type, power of two of the
/// bytes, in place or not, and way to run.
class PlanLog {
 public:
  /// Adds a call, and returns whether it is the first of its kind.
  /// \param way  says how the call runs, as in "plan allreduce_ring, ll16, as tuned for 65536 bytes of bf16"
  bool add(const PlannedCall& call, const std::string& way);

 private:
  std::set<std::tuple<std::string_view, std::string_view, int, bool, std::string>> known_;
};

}  // namespace chorale::nccl
