/// \file
/// These functions copy between boxes of tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "chorale/schedule/concrete.hpp"
#include "copy.hpp"

namespace chorale::schedule_run {

/// Returns the copies of one box to another of the same size in bytes, both in row-major order.
/// \param to_base, from_base the starts of the tensors
std::vector<Copy> copies_between(char* to_base, const schedule::Box& to,
                                 const schedule::ConcreteTensor& to_tensor, const char* from_base,
                                 const schedule::Box& from, const schedule::ConcreteTensor& from_tensor);

/// Returns how many thread blocks copy that many bytes: one for each 64 KiB, at least one and at most `most`.
inline uint32_t blocks_for(uint64_t bytes, uint32_t most) {
  return uint32_t(std::clamp<uint64_t>(bytes / (64 * 1024), 1, most));
}

}  // namespace chorale::schedule_run
