/// \file
/// A Geometry holds the sizes of a transport's rings, on which all ranks agree.
#pragma once

#include <cstdint>
#include <string>

#include "chorale/transport.hpp"

namespace chorale::transport {

struct Geometry {
  uint32_t channels = 0, depth = 0;
  uint64_t slot = 0;          ///< bytes
  uint64_t packet_bytes = 0;  ///< the bytes of packet slots in each bank of a channel
  RingAt ring = RingAt::receiver;
  uint64_t number = 0;  ///< the transport's number, see Transport::number()

  uint64_t window() const { return slot * depth; }

  // These return offsets in a rank's memory. It holds the ends of its links, then its rings, then its
  // packets, each by peer and then by channel.
  uint64_t state_at(int peer, uint32_t channel) const;
  uint64_t ring_at(int ranks, int peer, uint32_t channel) const;
  uint64_t packets_at(int ranks, int peer, uint32_t channel) const;
  uint64_t bytes(int ranks) const;

  // These return offsets in the staging memory: a copy of the peers' rings, in which kernels put data that a
  // proxy sends.
  uint64_t stage_at(int peer, uint32_t channel) const {
    return (uint64_t(peer) * channels + channel) * window();
  }
  uint64_t stage_bytes(int ranks) const { return stage_at(ranks, 0); }
};

/// Returns the number that this rank offers for a transport that all ranks are about to make. All ranks use
/// rank 0's offer. They cannot count independently, because after an error some ranks may have begun more
/// transports than others.
uint64_t offered_number(const World& world);

/// Checks the options and makes a geometry from them; collective.
/// \param what  the name of the calling function, and other values that must be the same on all ranks
/// \throws UsageError, on all ranks, for options that are not allowed
/// \throws RunError mismatch, on all ranks, if the options differ
Geometry agree_on_geometry(World& world, const RendezvousOptions& options, const std::string& what);

}  // namespace chorale::transport
