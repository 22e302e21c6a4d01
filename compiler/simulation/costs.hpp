#pragma once
/// \file
/// list_costs() says what moves cost on a machine, for a size of message.

#include <vector>

#include "../proof/memory.hpp"
#include "chorale/layout.hpp"
#include "chorale/machine.hpp"
#include "recording.hpp"

namespace chorale::simulation {

/// Holds what one move costs, whoever does it.
struct Cost {
  double bytes = 0;                      ///< of each operand
  double latency_ns = 0;                 ///< until the first bytes have come
  double block_ns = 0;                   ///< time of a thread block for the rest
  double memory_ns = 0;                  ///< time of the memory of its GPU
  double way_ns[3] = {0, 0, 0};          ///< time of the link to a peer, by Peer::Way
  double peer_memory_ns[3] = {0, 0, 0};  ///< time of that peer's memory
  double way_bytes[3] = {0, 0, 0};       ///< bytes over that link
  double copy_engine_ns = 0;             ///< time of the link, if a copy engine moves it
};

/// Returns the costs of Recording::moves.
std::vector<Cost> list_costs(const Recording&, const Layout&, const Machine&, PacketForm);

}  // namespace chorale::simulation
