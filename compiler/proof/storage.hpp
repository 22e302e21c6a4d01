#pragma once
/// \file
/// Maps each buffer of a rank to its memory. The input and the output may share one memory.

#include <cstdint>
#include <vector>

#include "chorale/storage.hpp"

namespace chorale::proof {

/// A rank has one memory space for each BufferKind, numbered by it, and a last one for packets.
inline constexpr uint32_t spaces_per_rank = 4, packet_space = 3;

class Storage {
 public:
  /// If `one`, input and output share one memory wherever the plan is in place. Otherwise they share it only
  /// where the executor makes them one.
  Storage(const Plan&, bool one);

  /// Returns the number of chunks of a buffer. An output that is left out because it is the input has the
  /// number that the output would have.
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
  BufferKind shifted_ = BufferKind::scratch;  ///< the one at the rank's segment of the other; scratch: none
};

}  // namespace chorale::proof
