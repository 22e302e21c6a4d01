#pragma once
/// \file
/// Which memory a buffer of a rank is: input and output may be one.

#include <cstdint>
#include <vector>

#include "chorale/storage.hpp"

namespace chorale::proof {

/// Spaces of a rank, by BufferKind, then packets.
inline constexpr uint32_t spaces_per_rank = 4, packet_space = 3;

class Storage {
 public:
  /// `one`: input and output are one memory wherever the plan is in place; else where the executor makes one
  /// of them.
  Storage(const Plan&, bool one);

  /// Of a buffer; of an output that is left out, as it is the input, those that it would have.
  uint64_t chunks(uint32_t rank, BufferKind) const;

  /// The memory that a buffer is in, and the chunk at which it begins there.
  struct Place {
    uint32_t space;
    uint64_t first;
  };
  Place place(uint32_t rank, BufferKind, bool packets) const;

  const Segmentation& segments() const { return segments_; }

 private:
  const Plan& plan_;
  std::vector<bool> one_;  // by rank
  Segmentation segments_;
  BufferKind shifted_ = BufferKind::scratch;  ///< that begins at the rank's segment of the other; or none
};

}  // namespace chorale::proof
