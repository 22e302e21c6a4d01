/// \file
/// Runs many bad schedules instead of one run: `chorale run --adversarial`.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "chorale/executor.hpp"
#include "tools/command.hpp"

namespace chorale::tools {

struct AdversarialRequest {
  std::vector<uint64_t> sizes;  ///< bytes of the message; empty: the least that the plan's order allows
  DType dtype = DType::f32;
  PacketForm packet = PacketForm::ll8;
  bool in_place = false;
  unsigned launches = 3;
  uint64_t seed = 0, schedules = 1000;
  /// The time limit of each size. After it, the schedule that runs is the last one. 0: no limit.
  std::chrono::nanoseconds limit{0};
};

/// Runs the schedules and prints a row for each size.
/// \throws Failure run_failed at the first schedule that goes wrong, and says its seed
Exit run_adversarial(const Plan&, const AdversarialRequest&);

}  // namespace chorale::tools
