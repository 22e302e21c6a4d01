/// \file
/// TunedPlans chooses an application's own plans before all others. The application makes them, or
/// read_own_plans() reads them from a file (docs/tuning.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"

namespace chorale {

/// Makes the plan called `name` for `ranks` ranks, as make_plan() of chorale::plans does.
using MakePlan = std::function<Plan(const std::string& name, int ranks)>;

/// Holds a plan for messages of `least_bytes` to `most_bytes`, both included. These are bytes of the input,
/// or for an all-gather of the output, as in tables.
struct OwnPlan {
  std::shared_ptr<const Plan> plan;
  std::string name;  ///< the plan's name or its file, for messages
  uint64_t least_bytes = 0, most_bytes = UINT64_MAX;
  std::optional<PacketForm> packet = {};  ///< the value for Arguments::packet
};

/// Holds the plans of a file that fit a number of ranks.
struct OwnPlans {
  std::vector<OwnPlan> plans;
  /// Says why each other plan was left out: "/plans/0: my_plan.json is for 8 ranks and not for 4".
  std::vector<std::string> left_out;

  /// Returns a text with one line per plan. Two lists that choose the same plans have the same text. Ranks
  /// compare it, because all ranks must choose the same plan.
  std::string digest() const;
};

/// Reads a file of plans:
///
///     {"version": 1, "plans": [
///       {"collective": "allreduce", "to_bytes": 65536, "plan": "mine_8.json", "packet": "ll8"},
///       {"collective": "allgather", "from_bytes": 1024, "plan": "allgather_ring_b64"}]}
///
/// A `plan` with a '/' or a '.' is a plan file, relative to the folder of `path`. Any other `plan` is a name,
/// and `make` makes that plan. Without `from_bytes` or `to_bytes` the plan's own limit holds. Without
/// `packet` the setting Config::packet holds. Each plan is checked, and proved unless it has a valid
/// certificate. Plan files for other numbers of ranks are left out.
///
/// \throws UsageError with the file, the entry and the reason if a file is missing or wrong, if a plan has
///         findings, is of another collective or has another root than 0, if it does not accept all sizes of
///         its entry, or if nothing makes it
OwnPlans read_own_plans(const std::string& path, int ranks, const MakePlan& make);

}  // namespace chorale
