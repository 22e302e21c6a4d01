/// \file
/// What a launch of the interpreter kernel works on, as host and device see it. C++17.
///
/// Each block has an image of its own, one piece of memory: a BlockHeader, then the tables it names. It fits into
/// shared memory, so that decoding an operation reads nothing across the chip. What grows from launch to launch
/// is in device memory (BlockState) and advanced by the block itself: a launch's arguments never change, so a
/// CUDA graph may replay it.
#pragma once

#include <cstdint>

#include "../interpreter/image.hpp"
#include "chorale/device/signal.hpp"

namespace chorale::cuda {

/// One end of a channel, as a block uses it. Record ids of one block's image are positions in its table of these.
struct ChannelEnd {
  Signal* at_peer = nullptr;       ///< where posts go; null: nobody can wait there
  const Signal* mine = nullptr;    ///< where the peer's posts come
  uint64_t* expected = nullptr;    ///< posts waited for, where several blocks wait on the channel; null: BlockState
  uint64_t* pushed = nullptr;      ///< port channels: triggers ever pushed
  const Signal* completed = nullptr;  ///< port channels: triggers that the proxy has done
  uint32_t channel = 0;            ///< in the rank's list: memory channels, then port channels
  uint32_t peer = 0;
};

/// Positions in bytes from the beginning of the header; each table is aligned to 16.
struct BlockHeader {
  uint32_t bytes = 0;
  uint32_t n_records = 0, n_channels = 0, widest = 1;
  uint32_t records = 0, places = 0, ids = 0, buffers = 0, switches = 0, members = 0, channels = 0, block = 0;
  uint64_t alignment = 16;
  uint64_t reserved = 0;
};
static_assert(sizeof(BlockHeader) % 16 == 0);

/// What a block keeps from launch to launch. `count` of posts it has waited for follow, by its channel table.
struct BlockState {
  uint64_t epoch = 0;    ///< launches that have ended
  uint64_t stopped = 0;  ///< not 0: one has not, and no further one may run
  CHORALE_HD uint64_t* counts() { return reinterpret_cast<uint64_t*>(this + 1); }
};
static_assert(sizeof(BlockState) == 16);

/// What a block that had to stop leaves for the host, in memory of the host.
struct alignas(64) StopRecord {
  uint32_t reason = 0;  ///< a Stop, written last
  uint32_t op = 0;
  int32_t peer = -1;
  uint32_t waits_on_word = 0;  ///< whether expected and seen say anything
  uint64_t expected = 0, seen = 0;
  uint64_t epoch = 0;
};

/// When an operation began, for traces.
struct TraceEntry {
  uint64_t ns = 0;
  uint32_t op = 0;  ///< ~0: the end of the block
  uint32_t epoch = 0;
};

/// A ring of entries for each block.
struct Trace {
  TraceEntry* entries = nullptr;  ///< null: no trace
  uint32_t per_block = 0;
};

/// What a block asks the proxy to do. In memory of the host.
struct alignas(64) PortTrigger {
  uint64_t turn = 0;  ///< the ticket plus one, written last
  const char* from = nullptr;
  char* to = nullptr;
  uint64_t bytes = 0;
  uint32_t client = 0;  ///< the binding
  uint32_t channel = 0;
  uint32_t signal = 0;
};

/// A rank's ring of triggers.
struct PortFifo {
  PortTrigger* slots = nullptr;
  uint64_t* head = nullptr;        ///< tickets given, in device memory
  const uint64_t* tail = nullptr;  ///< triggers taken, written by the host
  uint64_t mask = 0;
  uint32_t client = 0;
};

struct Launch {
  const char* images = nullptr;         ///< of all blocks
  const uint32_t* image_at = nullptr;   ///< where a block's begins, in units of 16 bytes
  char* states = nullptr;
  uint32_t state_bytes = 0;   ///< of one block, a multiple of 128
  uint32_t image_room = 0;    ///< bytes of shared memory for the image; larger images stay where they are
  uint32_t list_room = 0;     ///< bytes of shared memory for lists
  uint32_t rank = 0;
  char* in = nullptr;
  char* out = nullptr;
  AbortWord* abort = nullptr;
  uint64_t timeout_ns = 0;
  Semaphore* semaphores = nullptr;
  Signal* barriers = nullptr;
  StopRecord* stops = nullptr;
  Trace trace;
  PortFifo fifo;
};

}  // namespace chorale::cuda
