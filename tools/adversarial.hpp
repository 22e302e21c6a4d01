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
  std::vector<uint64_t> sizes;  ///< bytes of the message; empty: the smallest size that the plan takes
  DType dtype = DType::f32;
  PacketForm packet = PacketForm::ll8;
  bool in_place = false;
  unsigned launches = 3;
  uint64_t seed = 0, schedules = 1000;
  /// Limits the time of each size. The schedule that runs at the limit is the last one. 0: no limit.
  std::chrono::nanoseconds limit{0};
};

/// Runs the schedules and prints a row for each size.
/// \throws Failure run_failed at the first schedule that fails, and names its seed
Exit run_adversarial(const Plan&, const AdversarialRequest&);

}  // namespace chorale::tools
