/// \file
/// These functions copy between boxes of tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/schedule/concrete.hpp"
#include "strided_region.hpp"

namespace chorale::schedule_run {

/// Describes a copy of `rows` runs of `bytes` bytes each, at the given pitches.
struct Copy {
  char* to = nullptr;
  const char* from = nullptr;
  uint64_t bytes = 0, rows = 1, to_pitch = 0, from_pitch = 0;
  bool operator==(const Copy&) const = default;
};

/// Returns the strided regions that copy one box to another of the same size in bytes, both in row-major
/// order. The regions are in the order of the message, with offsets from the starts of the tensors.
std::vector<StridedRegion> regions_between(const schedule::Box& to, const schedule::ConcreteTensor& to_tensor,
                                           const schedule::Box& from,
                                           const schedule::ConcreteTensor& from_tensor);
/// Return the strided regions that copy a box to the start of a message, and a message to a box.
std::vector<StridedRegion> regions_to_message(const schedule::Box& from,
                                              const schedule::ConcreteTensor& from_tensor);
std::vector<StridedRegion> regions_from_message(const schedule::Box& to,
                                                const schedule::ConcreteTensor& to_tensor);

/// Returns the copies of one box to another of the same size in bytes, both in row-major order.
/// \param to_base, from_base the starts of the tensors
std::vector<Copy> copies_between(char* to_base, const schedule::Box& to,
                                 const schedule::ConcreteTensor& to_tensor, const char* from_base,
                                 const schedule::Box& from, const schedule::ConcreteTensor& from_tensor);

}  // namespace chorale::schedule_run
