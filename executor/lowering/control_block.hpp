/// \file
/// The control block of a rank is the memory that peers write to while a plan runs: signals and scratch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bind.hpp"
#include "chorale/device/signal.hpp"
#include "chorale/layout.hpp"
#include "chorale/plan.hpp"
#include "chorale/scratch.hpp"

namespace chorale::lowering {

/// Holds the offsets of the parts of a rank's control block. Every rank computes them for all ranks.
struct ControlBlock {
  uint64_t signals;  ///< by channel
  uint64_t plain, plain_bytes;
  uint64_t packets, packet_bytes;
  uint64_t bytes;  ///< of the block, at least those of one signal

  /// \param use         scratch_use() of the plan, of this rank
  /// \param head_bytes  bytes before the signals
  /// \param plain_here  true if the block contains the plain scratch, false if that is in other memory
  ControlBlock(const Plan& plan, uint32_t rank, const ScratchUse& use, const Layout& layout,
               uint64_t head_bytes = 0, bool plain_here = true) {
    const ScratchBytes scratch = scratch_bytes(use, layout);
    plain_bytes = scratch.plain();
    packet_bytes = scratch.packets();
    signals = head_bytes;
    plain = signals + plan.gpus[rank].signal_count() * sizeof(Signal);
    packets = plain + (plain_here ? plain_bytes : 0);
    bytes = std::max<uint64_t>(packets + packet_bytes, sizeof(Signal));
  }
};

}  // namespace chorale::lowering
