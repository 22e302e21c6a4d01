/// \file
/// From a rank's bound image to what each thread block of the GPU reads.
#pragma once

#include <cstdint>
#include <vector>

#include "../interpreter/bind.hpp"
#include "launch.hpp"

namespace chorale::cuda {

/// Device addresses that the images name.
struct ImagePlaces {
  std::vector<Signal*> signals_at_peer;  ///< by channel; null: nobody can wait there
  const Signal* signals = nullptr;       ///< this rank's, by channel
  uint64_t* expected = nullptr;          ///< by channel, for channels that several blocks wait on
  uint64_t* pushed = nullptr;            ///< by channel
  const Signal* completed = nullptr;     ///< by channel
};

struct BlockImages {
  std::vector<char> bytes;    ///< of all blocks
  std::vector<uint32_t> at;   ///< where each begins, in units of 16 bytes, and where the last ends
  uint32_t state_bytes = 0;   ///< of one BlockState with its counts
  uint32_t largest = 0;       ///< bytes of the largest image
  uint32_t list_bytes = 0;    ///< shared memory for lists
};

/// `image` with the bases of its buffers set; those of this rank's own input and output are not used.
BlockImages make_block_images(const interpreter::BoundImage& image, const ImagePlaces& places);

}  // namespace chorale::cuda
