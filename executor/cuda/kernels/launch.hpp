/// \file
/// Host and device share these structures for a launch on a GPU. C++17.
#pragma once

#include <cstdint>

#include "chorale/device/deadline.hpp"
#include "executor/lowering/program.hpp"
#include "executor/lowering/published.hpp"
#include "executor/lowering/trace.hpp"

namespace chorale::cuda {

using lowering::BlockState;
using lowering::Gaps;
using lowering::PageHeader;
using lowering::PageShape;
using lowering::ProgramPlace;
using lowering::ProgramStep;
using lowering::ProgramStepKind;
using lowering::Published;
using lowering::SyncItem;

/// Holds what a block that had to stop tells the host, in host memory.
struct alignas(64) StopRecord {
  uint32_t reason = 0;  ///< a Stop, written last
  uint32_t op = 0;
  int32_t peer = -1;
  uint32_t waits_on_word = 0;  ///< not 0: expected and seen are valid
  uint64_t expected = 0, seen = 0;
};

/// Asks the proxy to do one thing for a block, in host memory.
struct alignas(64) PortTrigger {
  uint64_t turn = 0;  ///< the ticket plus one, written last
  const char* from = nullptr;
  char* to = nullptr;
  uint64_t bytes = 0;
  uint32_t client = 0;  ///< the binding's number
  uint32_t channel = 0;
  uint32_t signal = 0;
};

/// Describes a rank's ring of triggers.
struct PortFifo {
  PortTrigger* slots = nullptr;
  uint64_t* head = nullptr;        ///< tickets given out, in device memory
  const uint64_t* tail = nullptr;  ///< triggers taken, written by the host
  uint64_t mask = 0;
  uint32_t client = 0;
};

/// Holds what a launch publishes, and where. Only bindings with Call::publishes use it.
struct Publication {
  static constexpr uint32_t most_ranks = 16;

  const Published* from_peers = nullptr;     ///< by rank; null: ranks publish nothing
  Published* const* at_peers = nullptr;      ///< by rank: where this rank publishes, in device memory
  uint32_t ranks = 0;                        ///< 0: no peer accesses this rank's buffers
  uint64_t in[most_ranks], out[most_ranks];  ///< by rank: the address of the buffer at that rank
};

struct Launch {
  const char* program = nullptr;  ///< by block: its pages
  char* states = nullptr;
  PageShape page;
  uint32_t pages = 1;        ///< pages of each block
  uint32_t state_bytes = 0;  ///< bytes of one block's state, a multiple of 16
  uint32_t rank = 0;
  uint32_t next_beside = 0;  ///< not 0: the next launch may reach its own wait before this one has ended
  char* in = nullptr;        ///< the start of this round's slices; `out` likewise
  char* out = nullptr;
  uint64_t skip = 0;  ///< bytes of every chunk before the slice of this round
  Gaps gaps;          ///< of `in` and `out`
  AbortWord* abort = nullptr;
  uint64_t timeout_ns = 0;
  StopRecord* stops = nullptr;
  Trace trace;
  PortFifo fifo;
  Publication publication;
};

}  // namespace chorale::cuda
