/// \file
/// The control memory is shared by all ranks of a world on one host. Ranks use it for barriers, small
/// exchanges and aborts. Its layout is the same for ranks of one process and of several.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "chorale/device/deadline.hpp"
#include "chorale/error.hpp"

namespace chorale::world {

/// Identifies a process. The pid alone is not enough: another process may have it by now, and it has no
/// meaning in another namespace.
struct Process {
  int32_t pid = 0;
  uint64_t start = 0;  ///< its start, in clock ticks after boot
  uint64_t space = 0;  ///< the inode of its process namespace

  bool operator==(const Process&) const = default;
};

enum class Presence : uint32_t { absent, claimed, joined, left };

/// Names a collective call.
enum class Collective : uint32_t { barrier, allgather, agreement, binding, window, reset, join, split };
/// The names are indexed by Collective, and are used in text like "rank 1 is in a barrier".
inline constexpr const char* collective_names[] = {"a barrier",
                                                   "an allgather",
                                                   "an agreement",
                                                   "an execute() or prepare() that binds its plan",
                                                   "the making of a window",
                                                   "a reset",
                                                   "the end of a join",
                                                   "a split"};

/// Holds the reason why a rank gave up an attempt to make the next world. World::survivors() uses it.
struct Failure {
  std::atomic<uint64_t> call;  ///< the rank's Seat::came in that attempt; stored after all other members
  uint32_t reason;             ///< a RunError::Reason
  char text[1000];
};

/// Holds the reason why a world cannot be joined. Only the first rank that writes one counts. All members are
/// zero before.
struct Refusal {
  static constexpr size_t text_bytes = 1000;

  std::atomic<uint32_t> written;  ///< 1: a rank is writing; 2: complete
  uint32_t reason;                ///< a RunError::Reason
  char text[text_bytes];

  bool stands() const { return written.load(std::memory_order_acquire) == 2; }

  /// Writes the reason. Returns false if another rank was first.
  bool write(RunError::Reason why, const std::string& said) {
    uint32_t nobody = 0;
    if (!written.compare_exchange_strong(nobody, 1)) return false;
    reason = uint32_t(why);
    const size_t length = std::min(said.size(), text_bytes - 1);
    std::memcpy(text, said.data(), length);
    text[length] = 0;
    written.store(2, std::memory_order_release);
    return true;
  }

  /// Throws the refusal. Call it only when stands() is true.
  [[noreturn]] void throw_it() const { throw RunError(RunError::Reason(reason), text); }
};

/// Counts the launches of a rank: `count` calls of one executor since the last reset.
struct Launched {
  uint16_t executor = 0;  ///< the executor's number, the same on all ranks; 0: none
  uint16_t resets = 0;    ///< the number of resets of the world at that time
  uint32_t count = 0;

  static Launched of(uint64_t word) { return {uint16_t(word >> 48), uint16_t(word >> 32), uint32_t(word)}; }
  uint64_t word() const { return uint64_t(executor) << 48 | uint64_t(resets) << 32 | count; }

  bool counts_with(const Launched& other) const {
    return executor == other.executor && resets == other.resets;
  }
};

/// Holds one rank's part of the control memory. It starts as zeros.
struct alignas(64) Seat {
  static constexpr size_t chunk_bytes = 4096;

  std::atomic<Presence> presence;
  Process process;                 ///< valid when the rank has joined
  uint32_t host;                   ///< the number of its host; ranks of one host share memory
  std::atomic<uint64_t> arrived;   ///< the number of the last barrier that it entered
  std::atomic<uint64_t> resets;    ///< the number of the last reset that it entered
  std::atomic<uint64_t> launches;  ///< a Launched, see LaunchCount
  std::atomic<uint64_t> call;      ///< a hash of the last launch, over the arguments that must be the same on
                                   ///< all ranks

  // The rank writes these when the next world is made. No other rank writes them.
  std::atomic<uint64_t> came;  ///< the attempt that it takes part in, and with which list: see Shrink::call()
  std::atomic<uint64_t> offer;  ///< a file descriptor of the next world's control memory
  std::atomic<uint64_t> ready;  ///< the attempt's word, when the rank has opened the offered memory
  Failure failure;
  uint32_t former_rank;  ///< its rank in the previous world, if any; written before any other rank sees it

  // The rank writes these in an exchange. Each exchange has one barrier, so a rank can be one exchange ahead
  // of a rank that still reads, but not two. So there are two of each.
  Collective collective[2];
  uint64_t total_bytes[2];
  std::byte chunk[2][chunk_bytes];
};

/// Counts the ranks that arrive at a barrier. Every rank but the last waits for `passed`.
struct Barrier {
  std::atomic<uint32_t> arrived;
  std::atomic<uint64_t> passed;  ///< the number of the last barrier that all ranks have entered
};

struct Control {
  static constexpr uint64_t version = 0x63686f72616c650a;  // "chorale", and 10
  static constexpr size_t why_bytes = 4096;

  uint64_t magic;
  uint32_t ranks;
  Process owner;
  std::atomic<uint32_t> joined;

  Refusal refusal;  ///< while ranks join

  AbortWord abort;
  std::atomic<uint32_t> why_ready;  ///< 1 when `why` is written; stays 0 if device code stopped the world
  char why[why_bytes];

  std::atomic<uint32_t> bell;     ///< a futex that changes when anything changes that a rank may wait for
  std::atomic<uint32_t> leavers;  ///< the number of ranks that have left
  Barrier barrier, reset;

  std::atomic<uint64_t> attempt;  ///< the word of the Attempt to make the next world
  uint64_t offered_in;            ///< the word of the attempt that made this world; 0: none
  std::atomic<uint32_t> made;     ///< 1 when that attempt has made it

  Seat* seats() { return reinterpret_cast<Seat*>(this + 1); }
  static size_t bytes(int ranks) { return sizeof(Control) + size_t(ranks) * sizeof(Seat); }
};

static_assert(sizeof(Control) % alignof(Seat) == 0);
static_assert(std::atomic<uint64_t>::is_always_lock_free, "locks would not work between processes");

}  // namespace chorale::world
