/// \file
/// Lowers a rank's bound image to the device program that its thread blocks run.
#pragma once

#include <cstdint>
#include <vector>

#include "bind.hpp"
#include "chorale/packet_form.hpp"
#include "program.hpp"
#include "switch_alias.hpp"

namespace chorale::lowering {

/// Holds the addresses that a program names, besides those of buffers.
struct ProgramAddresses {
  std::vector<Signal*> signals_at_peer;  ///< by channel; null: no block can wait there
  std::vector<const Signal*> signals;    ///< this rank's signals, by channel
  uint64_t* expected = nullptr;          ///< by channel, for channels on which several blocks wait
  uint64_t* pushed = nullptr;            ///< by channel
  const Signal* completed = nullptr;     ///< by channel
  Semaphore* semaphores = nullptr;
  Signal* barriers = nullptr;
  /// Holds the address of staging for packets to other hosts (DeviceProgram::staging_bytes). It is a number
  /// because the size of staging is known only after the first lowering, which runs without this memory.
  uint64_t staging = 0;
  /// Holds the addresses of switch channels. Null: they use peers' memory.
  const SwitchAliases* switches = nullptr;
  /// Holds Launch::skip of a round of the program's shape. It decides which bytes of a slice exist.
  uint64_t skip = 0;
};

struct DeviceProgram {
  std::vector<char> bytes;  ///< all pages of all blocks
  uint32_t blocks = 0;
  PageShape page;
  uint32_t pages = 1;         ///< pages of each block
  uint32_t state_bytes = 0;   ///< bytes of one block's state, a multiple of 128
  bool exchange = false;      ///< exchange.cuh can run it
  bool whole = false;         ///< all units are whole, and aligned if the passed buffers are
  uint64_t busy_threads = 0;  ///< the most threads of a block that can work at the same time
  uint64_t staging_bytes = 0;
  uint32_t most_plain = 0, most_packets = 0;  ///< the most places of a step
};

struct LowerOptions {
  /// Sets the size of a page's memory where it runs, unless a single step or loop needs more. The steps of a
  /// usual block fit in one page of this size, and several blocks of a GPU fit on a multiprocessor.
  uint64_t page_bytes = 24 << 10;
  uint64_t most_page_bytes = unlimited;  ///< more is an error
  /// Sets the most bytes of a page for a loop. A pipeline whose loop needs more is unrolled. 0: all are.
  uint64_t loop_bytes = 1 << 20;
};

/// Lowers a bound image to the program of all its blocks.
/// \param image the bases of its buffers are set. Those of this rank's own input and output (buffers 0 and 1)
/// are passed anew at every launch; those of ranks on other hosts are a FarPlace's
/// \throws UsageError for a switch channel whose members' places have no address in
/// ProgramAddresses::switches
/// \throws RunError resources for a block with a page of more than `most_page_bytes`
DeviceProgram lower(const BoundImage& image, const ProgramAddresses& places, PacketForm packet,
                    const LowerOptions& options = {});

}  // namespace chorale::lowering
