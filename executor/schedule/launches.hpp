/// \file
/// This file holds the plans of thread blocks that a host schedule launches.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chorale/executor.hpp"
#include "rank_program.hpp"

namespace chorale::schedule_run {

using BlockPlans = std::map<std::string, Plan, std::less<>>;

/// Checks the launches of all ranks.
/// \throws UsageError unless every launch has a plan that accepts its views, and all ranks launch the same
/// plans in the same order
void check_launches(const schedule::Schedule&, const Unrolled&, const BlockPlans&);

/// Holds the launches of a rank. One executor runs them, because make_rank_program() never lets two run at
/// once.
class Launches {
 public:
  /// Binds every launch of the program, so that a run allocates nothing and may be captured. Collective.
  Launches(World&, const Config&, const BlockPlans&, const RankProgram&);

  /// Runs the launch on the CPU, or enqueues it on a CUDA `stream`.
  /// \throws RunError
  void execute(const Action&, void* stream);
  /// These two do what the same functions of Executor do, or nothing if there are no launches.
  void check();
  void synchronize(void* stream);

 private:
  struct Launch {
    const Plan* plan;
    Arguments arguments;
  };
  const Action* first_;                          // the first action of the program
  std::vector<std::optional<Launch>> launches_;  // by action
  std::optional<Executor> executor_;
};

}  // namespace chorale::schedule_run
