/// \file
/// Lowers a rank's bound image to the device program that its thread blocks run.
#pragma once

#include <cstdint>
#include <vector>

#include "bind.hpp"
#include "chorale/executor.hpp"
#include "program.hpp"
#include "switch_alias.hpp"

namespace chorale::lowering {

/// The addresses that a program names beside those of buffers.
struct ProgramAddresses {
  std::vector<Signal*> signals_at_peer;  ///< by channel; null: nobody can wait there
  std::vector<const Signal*> signals;    ///< this rank's signals, by channel
  uint64_t* expected = nullptr;          ///< by channel, for channels that several blocks wait on
  uint64_t* pushed = nullptr;            ///< by channel
  const Signal* completed = nullptr;     ///< by channel
  Semaphore* semaphores = nullptr;
  Signal* barriers = nullptr;
  /// The address of packets on their way to other hosts (DeviceProgram::staging_bytes). It is a number,
  /// because their size is known only after a program was made, so the first one is made without memory for
  /// them.
  uint64_t staging = 0;
  const SwitchAliases* switches = nullptr;  ///< the way of switch channels; null: by peers' memory
  uint64_t skip = 0;  ///< Launch::skip of a round that the program is for; it decides what exists of a slice
};

struct DeviceProgram {
  std::vector<char> bytes;  ///< of all blocks, all pages
  uint32_t blocks = 0;
  PageShape page;
  uint32_t pages = 1;  ///< of each block
  uint32_t state_bytes = 0;
  bool exchange = false;      ///< exchange.cuh can run it, if what is passed is aligned to 16 bytes
  uint64_t busy_threads = 0;  ///< the most threads of a block that have something to do at a time
  uint64_t staging_bytes = 0;
  uint32_t most_plain = 0, most_packets = 0;  ///< the most places of a step
};

struct LowerOptions {
  /// The memory that a page may take where it runs, unless a single step or loop takes more. The steps of a
  /// usual block fit in one page of this size, and on a GPU several blocks fit on a multiprocessor.
  uint64_t page_bytes = 24 << 10;
  uint64_t most_page_bytes = unlimited;  ///< more is an error
  bool loops = true;                     ///< false: pipelines are unrolled
};

/// Lowers a bound image to the program of all its blocks.
/// \param image  has the bases of its buffers set. Those of this rank's own input and output (buffers 0 and
/// 1)
///               are passed anew at every launch; those of ranks of other hosts are a FarPlace's
/// \throws UsageError for a switch channel whose members' places have no address in
/// ProgramAddresses::switches \throws RunError resources for a block that has a page of more than
/// `most_page_bytes`
DeviceProgram lower(const BoundImage& image, const ProgramAddresses& places, PacketForm packet,
                    const LowerOptions& options = {});

}  // namespace chorale::lowering
