/// \file
/// The sizes of a transport's rings, agreed on by all ranks.
#pragma once

#include <cstdint>
#include <string>

#include "chorale/transport.hpp"

namespace chorale::transport {

struct Geometry {
  uint32_t channels = 0, depth = 0;
  uint64_t slot = 0;          ///< bytes
  uint64_t packet_bytes = 0;  ///< of slots in each bank of a channel
  RingAt ring = RingAt::receiver;
  uint64_t number = 0;  ///< of the transport, see Transport::number()

  uint64_t window() const { return slot * depth; }

  /// Where things lie in the memory of a rank: the ends of its links, then its rings, then its packets, each
  /// by peer and then by channel.
  uint64_t state_at(int peer, uint32_t channel) const;
  uint64_t ring_at(int ranks, int peer, uint32_t channel) const;
  uint64_t packets_at(int ranks, int peer, uint32_t channel) const;
  uint64_t bytes(int ranks) const;

  /// The same in a copy of the peers' rings, where kernels leave what a proxy is to send.
  uint64_t stage_at(int peer, uint32_t channel) const {
    return (uint64_t(peer) * channels + channel) * window();
  }
  uint64_t stage_bytes(int ranks) const { return stage_at(ranks, 0); }
};

/// What this rank says of the number of a transport that all ranks are about to make: rank 0's word holds.
/// Its own count would not do: after an error some ranks may have begun more transports than others.
uint64_t offered_number(const World& world);

/// Collective.
/// \param what  the function that asks, and all else that must be the same
/// \throws UsageError for options that cannot be, RunError mismatch if they differ; either on all ranks
Geometry agree_on_geometry(World& world, const RendezvousOptions& options, const std::string& what);

}  // namespace chorale::transport
