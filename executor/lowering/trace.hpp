#pragma once
/// \file
/// Blocks record when operations begin during a launch, for Executor::trace. C++17, host and device.

#include <cstdint>

#include "chorale/device/macros.hpp"

namespace chorale {

struct TraceEntry {
  uint64_t ns = 0;  ///< 0: nothing was recorded here
  uint32_t op = 0;  ///< the operation; Trace::end: the end of the block
  uint32_t epoch = 0;
};

/// Holds a ring of its last launches for each block. Every operation has its place in each launch.
struct Trace {
  static constexpr uint32_t end = ~uint32_t{0};

  TraceEntry* entries = nullptr;  ///< null: no trace
  uint32_t launches = 0;          ///< the number of launches that are kept
  uint32_t per_launch = 0;        ///< entries per launch: the most operations of a block, plus its end

  CHORALE_HD uint64_t per_block() const { return uint64_t(launches) * per_launch; }

  /// Records that `block` enters operation `op`. The last launches stay, because the epoch addresses the ring
  /// and only grows.
  CHORALE_HD void note(uint32_t block, uint64_t epoch, uint32_t op, uint64_t ns) const {
    const uint64_t launch = block * uint64_t(launches) + uint32_t(epoch) % launches;
    entries[launch * per_launch + (op == end ? per_launch - 1 : op)] = {ns, op, uint32_t(epoch)};
  }
};

}  // namespace chorale
