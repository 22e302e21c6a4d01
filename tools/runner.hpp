/// \file
/// Runs a plan on test data, on threads or processes of this machine, and compares every result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/config.hpp"
#include "chorale/executor.hpp"
#include "tools/oracle.hpp"
#include "tools/profile.hpp"

namespace chorale::tools {

struct RunRequest {
  std::vector<uint64_t> sizes;  ///< bytes of the message
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  bool override_op = false;  ///< true: pass `op` to the executor; else the plan's operator is used
  std::optional<PacketForm> packet;
  bool in_place = false;
  bool processes = false;  ///< true: one process per rank; else threads of this process
  unsigned repeat = 3;     ///< runs of each size, with new data each
  unsigned in_a_row = 0;   ///< launches of each run, see LaunchesInARow; 0: one launch, which is timed
  std::string trace;  ///< file for the trace of the last run of each size, see trace_to(), also of one that
                      ///< fails; empty: none
  const Profiles* profiles = nullptr;  ///< gets the profiles of the last runs, see profile_by(); null: none
};

/// Holds the result of one size.
struct SizeResult {
  std::vector<double> times_us;      ///< the slowest rank's time of each run; 0 with `in_a_row`
  std::optional<std::string> wrong;  ///< the first wrong element, or another error
  bool finished = false;
};

struct RunOutcome {
  std::vector<SizeResult> sizes;
  std::string error;  ///< the reason why the run ended early; empty if it did not
};

/// Runs the plan for all sizes of the request.
/// \throws Failure, UsageError for errors that are found before anything runs
RunOutcome run_plan(const Plan&, const RunRequest&, const Config&);

}  // namespace chorale::tools
