/// \file
/// Records, from a rank's bound image, the tapes that its thread blocks play.
#pragma once

#include <cstdint>
#include <vector>

#include "../interpreter/bind.hpp"
#include "chorale/executor.hpp"
#include "switch_alias.hpp"
#include "tape.hpp"

namespace chorale::cuda {

/// Device addresses that tapes name.
struct TapePlaces {
  std::vector<Signal*> signals_at_peer;  ///< by channel; null: nobody can wait there
  std::vector<const Signal*> signals;    ///< this rank's signals, by channel
  uint64_t* expected = nullptr;          ///< by channel, for channels that several blocks wait on
  uint64_t* pushed = nullptr;            ///< by channel
  const Signal* completed = nullptr;     ///< by channel
  Semaphore* semaphores = nullptr;
  Signal* barriers = nullptr;
  char* staging = nullptr;                  ///< packets on their way to other hosts: Tapes::staging_bytes
  const SwitchAliases* switches = nullptr;  ///< the way of switch channels; null: by peers' memory
  uint64_t skip = 0;  ///< Launch::skip of a round that the tapes are for; it decides what exists of a slice
};

struct Tapes {
  std::vector<char> bytes;  ///< of all blocks, all pages
  PageShape page;
  uint32_t pages = 1;
  uint32_t state_bytes = 0;
  bool exchange = false;      ///< exchange.cuh can play them, if what is passed is aligned to 16 bytes
  uint64_t busy_threads = 0;  ///< the most threads of a block that have something to do at a time
  uint64_t staging_bytes = 0;
};

/// The shared memory that a page may take. The steps of a usual tape fit in one page, and several blocks fit
/// on a multiprocessor.
constexpr uint64_t default_page_bytes = 24 << 10;

/// Records the tapes of all blocks.
/// \param image       has the bases of its buffers set. Those of this rank's own input and output (buffers 0
///                    and 1) are passed anew at every launch; those of ranks of other hosts are a FarPlace's
/// \param page_bytes  the most shared memory of a page, unless a single step takes more
/// \throws UsageError for a switch channel whose members' places have no address in TapePlaces::switches
/// \throws RunError resources for a block whose step has more places than fit in shared memory
Tapes record_tapes(const interpreter::BoundImage& image, const TapePlaces& places, PacketForm packet,
                   uint64_t page_bytes = default_page_bytes);

}  // namespace chorale::cuda
