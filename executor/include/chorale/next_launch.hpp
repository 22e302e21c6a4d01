/// \file
/// When a launch lets the next one of its stream take its place on the GPU before it has done. C++17.
#pragma once

#include <cstdint>

namespace chorale::detail {

/// Both launches together leave half of the GPU to other streams: a kernel there may be what a peer waits for
/// before it comes to this one (docs/decisions/0010-the-next-launch-stands-beside.md).
/// \param blocks    thread blocks of a launch
/// \param resident  how many of them the GPU holds at a time
constexpr bool next_may_stand_beside(uint64_t blocks, uint64_t resident) { return 4 * blocks <= resident; }

}  // namespace chorale::detail
