/// \file
/// Copies between boxes of tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "chorale/host/concrete.hpp"
#include "strip.hpp"

namespace chorale::hostrun {

/// `rows` runs of `bytes` bytes, the pitches apart.
struct Copy {
  char* to = nullptr;
  const char* from = nullptr;
  uint64_t bytes = 0, rows = 1, to_pitch = 0, from_pitch = 0;
  bool operator==(const Copy&) const = default;
};

/// The elements of one box to those of another of as many bytes, in row-major order each: in the order of the
/// message, with offsets from where the tensors begin.
std::vector<Strip> strips_between(const host::Box& to, const host::ConcreteTensor& to_tensor,
                                  const host::Box& from, const host::ConcreteTensor& from_tensor);
/// To a message from its begin on, and from one.
std::vector<Strip> strips_to_message(const host::Box& from, const host::ConcreteTensor& from_tensor);
std::vector<Strip> strips_from_message(const host::Box& to, const host::ConcreteTensor& to_tensor);

/// The elements of one box to those of another of as many bytes, in row-major order each.
/// \param to_base, from_base  where the tensors begin
std::vector<Copy> copies_between(char* to_base, const host::Box& to, const host::ConcreteTensor& to_tensor,
                                 const char* from_base, const host::Box& from,
                                 const host::ConcreteTensor& from_tensor);

}  // namespace chorale::hostrun
