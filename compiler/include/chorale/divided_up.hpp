#pragma once

#include <cstdint>

namespace chorale {

/// Returns `all` / `by`, rounded up. Does not wrap. `by` is not 0.
constexpr uint64_t divided_up(uint64_t all, uint64_t by) { return all / by + (all % by != 0); }

}  // namespace chorale
