/// \file
/// All ranks of a world share this memory for their own affairs. It is the same in one process and over
/// several.
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

/// Identifies a process. Its number alone does not: another process may have it by now, and it says nothing
/// in another namespace.
struct Process {
  int32_t pid = 0;
  uint64_t start = 0;  ///< clock ticks from boot to its start
  uint64_t space = 0;  ///< inode of its process namespace

  bool operator==(const Process&) const = default;
};

enum class Presence : uint32_t { absent, claimed, joined, left };

/// Names a call that a rank makes together with all others.
enum class Collective : uint32_t { barrier, allgather, agreement, binding, window, reset, join };
/// These are indexed by Collective, and read as in "rank 1 is in a barrier".
inline constexpr const char* collective_names[] = {"a barrier",
                                                   "an allgather",
                                                   "an agreement",
                                                   "an execute() or prepare() that binds its plan",
                                                   "the making of a window",
                                                   "a reset",
                                                   "the end of a join"};

/// Says why a rank gave up an attempt to make the next world, see shrink.hpp.
struct Failure {
  std::atomic<uint32_t> attempt;  ///< its number plus 1; stored after all else is written
  uint32_t reason;                ///< a RunError::Reason
  char text[1000];
};

/// Says why a world cannot be joined. The first rank that says so counts. It is zero if none has.
struct Refusal {
  static constexpr size_t text_bytes = 1000;

  std::atomic<uint32_t> written;  ///< 1: a rank is writing; 2: it is all here
  uint32_t reason;                ///< a RunError::Reason
  char text[text_bytes];

  bool stands() const { return written.load(std::memory_order_acquire) == 2; }

  /// Writes why. Returns false if another rank was first.
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

  /// Throws the refusal. Call it only when it stands.
  [[noreturn]] void throw_it() const { throw RunError(RunError::Reason(reason), text); }
};

/// Says what a rank has launched last: `count` calls of one executor since the last reset.
struct Launched {
  uint16_t executor = 0;  ///< its number, the same on all ranks; 0: there is none
  uint16_t resets = 0;    ///< the number of resets of the world by then
  uint32_t count = 0;

  static Launched of(uint64_t word) { return {uint16_t(word >> 48), uint16_t(word >> 32), uint32_t(word)}; }
  uint64_t word() const { return uint64_t(executor) << 48 | uint64_t(resets) << 32 | count; }

  bool counts_with(const Launched& other) const {
    return executor == other.executor && resets == other.resets;
  }
};

/// Holds one rank's part. Its first state is zero.
struct alignas(64) Seat {
  static constexpr size_t chunk_bytes = 4096;

  std::atomic<Presence> presence;
  Process process;                 ///< valid once joined
  uint32_t host;                   ///< its host's number; ranks of one host share memory
  std::atomic<uint64_t> arrived;   ///< number of the last barrier that it entered
  std::atomic<uint64_t> resets;    ///< number of the last reset that it entered
  std::atomic<uint64_t> launches;  ///< a Launched, see LaunchCount
  std::atomic<uint64_t> call;      ///< the last launch: a hash of what is the same on all ranks

  // The rank says these when the next world is made. No other rank writes them.
  std::atomic<uint32_t> came;   ///< the number of the attempt that it came to, plus 1
  std::atomic<uint64_t> offer;  ///< a descriptor of the next world's control memory
  std::atomic<uint64_t> ready;  ///< the attempt's word, once the rank has what that offers
  Failure failure;
  uint32_t former_rank;  ///< its rank in the world before, if any; written before any other rank sees it

  // The rank says these in an exchange. Ranks meet once in each exchange, so a rank may be one exchange ahead
  // of another that still reads, but not two. So there are two of each.
  Collective collective[2];
  uint64_t total_bytes[2];
  std::byte chunk[2][chunk_bytes];
};

/// Counts the ranks that come to a barrier. All but the last count themselves and wait for `passed`.
struct Barrier {
  std::atomic<uint32_t> arrived;
  std::atomic<uint64_t> passed;  ///< number of the last barrier that all ranks entered
};

struct Control {
  static constexpr uint64_t version = 0x63686f72616c6508;  // "chorale", and 8
  static constexpr size_t why_bytes = 4096;

  uint64_t magic;
  uint32_t ranks;
  Process owner;
  std::atomic<uint32_t> joined;

  Refusal refusal;  ///< while ranks join

  AbortWord abort;
  std::atomic<uint32_t> why_ready;  ///< `why` is written; not so if device code stopped the world
  char why[why_bytes];

  std::atomic<uint32_t> bell;     ///< a futex: rung when anything that a wait looks at has changed
  std::atomic<uint32_t> leavers;  ///< ranks that have left
  Barrier barrier, reset;

  std::atomic<uint64_t> attempt;      ///< to make the next world: an Attempt
  std::atomic<uint64_t> last_failed;  ///< the word of the last attempt that failed
  uint64_t offered_in;                ///< the word of the attempt that made this world; 0: none did

  Seat* seats() { return reinterpret_cast<Seat*>(this + 1); }
  static size_t bytes(int ranks) { return sizeof(Control) + size_t(ranks) * sizeof(Seat); }
};

static_assert(sizeof(Control) % alignof(Seat) == 0);
static_assert(std::atomic<uint64_t>::is_always_lock_free, "locks would not work between processes");

}  // namespace chorale::world
