#pragma once
/// \file
/// Storage maps each buffer of a rank to its memory. Input and output may share one memory.

#include <cstdint>
#include <vector>

#include "chorale/storage.hpp"

namespace chorale::proof {

/// A rank has one memory space per BufferKind, with the same number, and a last one for packets.
inline constexpr uint32_t spaces_per_rank = 4, packet_space = 3;

class Storage {
 public:
  /// With `one`, input and output share one memory wherever the plan is in place. Otherwise they share it
  /// only where the executor always merges them.
  Storage(const Plan&, bool one);

  /// Returns the number of chunks of a buffer. An output may be left out because it is the input. Then this
  /// returns the number that the output would have.
  uint64_t chunks(uint32_t rank, BufferKind) const;

  /// Names the memory that holds a buffer, and the chunk at which the buffer begins there.
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
  BufferKind shifted_ = BufferKind::scratch;  ///< the one that is a segment of the other; scratch: none
};

}  // namespace chorale::proof
