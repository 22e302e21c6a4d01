#pragma once
/// \file
/// list_costs() says what moves cost on a machine, for one message size.

#include <vector>

#include "chorale/layout.hpp"
#include "chorale/machine.hpp"
#include "compiler/proof/execution/memory.hpp"
#include "recording.hpp"

namespace chorale::simulation {

/// Holds the cost of one move, for the block or proxy that does it.
struct Cost {
  double bytes = 0;                  ///< per operand
  double latency_ns = 0;             ///< until the first bytes arrive
  double block_ns = 0;               ///< time that a thread block needs for the rest
  double send_ns = 0;                ///< time that packets take to leave the block, which goes on meanwhile
  double memory_ns = 0;              ///< time that the memory of its GPU is busy
  double traffic_ns[3] = {0, 0, 0};  ///< time that the link to a peer is busy, by Peer::Traffic
  double peer_memory_ns[3] = {0, 0, 0};  ///< time that the peer's memory is busy
  double traffic_bytes[3] = {0, 0, 0};   ///< bytes over the link to a peer
  double copy_engine_ns = 0;             ///< time that the link is busy, if a copy engine moves the data
};

/// Returns by codec of the plan: the bytes of an encoded block, relative to those of the plain one.
std::vector<double> coded_parts_of(const Plan&, DType);

/// Returns the costs of Recording::moves.
/// \param coded_parts  those of coded_parts_of()
std::vector<Cost> list_costs(const Recording&, const Layout&, const Machine&, PacketForm,
                             const std::vector<double>& coded_parts);

}  // namespace chorale::simulation
