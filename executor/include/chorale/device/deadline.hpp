#pragma once
// Every wait ends: when what it waits for comes, when its time is over, or when the world stops.

#include <cstddef>
#include <cstdint>

#include "chorale/device/atomics.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"

#if !defined(__CUDACC__)
#include <chrono>
#endif

namespace chorale {

/// One per world and rank, in memory that the host and all its kernels see. Zero while the world runs. Who
/// stops it first decides what the others are told.
struct alignas(64) AbortWord {
  uint32_t stop = 0;     ///< a Stop, written last
  uint32_t rank = 0;     ///< who is to blame, valid once `stop` is not zero
  uint32_t claimed = 0;  ///< settles which of several raisers on the host writes
};

/// Nanoseconds of a clock that only goes forward.
CHORALE_FN uint64_t now_ns() {
#if defined(__CUDACC__)
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
#else
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::steady_clock::now().time_since_epoch())
                      .count());
#endif
}

/// Of one thread: stops the world with `reason`, blaming `rank`, unless somebody did before; says whether it
/// was us.
CHORALE_FN bool raise_stop(AbortWord* word, Stop reason, uint32_t rank) {
#if defined(__CUDACC__)
  // The word is the host's, and no read-modify-write of a GPU is atomic there as a rule. One store has both
  // reason and rank. Of GPUs that raise at the same moment the last is believed, and who reads between their
  // stores may blame one's rank for the other's reason.
  static_assert(offsetof(AbortWord, stop) == 0 && offsetof(AbortWord, rank) == 4);
  if (load_acquire(&word->stop) != 0 || load_relaxed(&word->claimed) != 0) return false;
  store_release(reinterpret_cast<uint64_t*>(word), uint64_t(rank) << 32 | uint32_t(reason));
#else
  if (!compare_exchange_acquire(&word->claimed, 0u, 1u)) return false;
  store_relaxed(&word->rank, rank);
  store_release(&word->stop, uint32_t(reason));
#endif
  return true;
}

/// When `ns` nanoseconds from now are over, by now_ns(); what no clock reaches stays in the future.
CHORALE_FN uint64_t ns_from_now(uint64_t ns) {
  const uint64_t now = now_ns();
  return ns < ~uint64_t{0} - now ? now + ns : ~uint64_t{0};
}

/// The limits of a wait. The default waits for ever.
struct Deadline {
  AbortWord* shared = nullptr;  ///< polled during waits; null: nobody can stop us
  uint64_t ticks = 0;           ///< nanoseconds a wait may take; 0: any time
  uint64_t until = 0;  ///< when time is over, by now_ns(); 0: not started, each wait starts a copy of its own

  /// Starts the clock, to give several waits one limit together.
  CHORALE_FN void start() { until = ticks != 0 ? ns_from_now(ticks) : 0; }

  /// When a wait that begins now must end: `until` if it was started, else by a clock of its own; 0: never.
  CHORALE_FN uint64_t started() const { return until != 0 ? until : ticks != 0 ? ns_from_now(ticks) : 0; }

  CHORALE_FN bool expired() const { return until != 0 && now_ns() >= until; }

  /// Of one thread: why to stop waiting now.
  CHORALE_FN Stop poll() const {
    if (shared) {
      const uint32_t stop = load_acquire(&shared->stop);
      if (stop != 0) return Stop(stop);
    }
    return expired() ? Stop::timed_out : Stop::none;
  }
};

/// Whether the group has to stop; the same answer in every thread. Synchronises.
CHORALE_FN Stop stop_for(const Group& group, const Deadline& deadline) {
  Stop stop = Stop::none;
  if (group.leader()) {
    stop = group.stopped();
    if (stop == Stop::none) stop = deadline.poll();
  }
  return group.agree(stop);
}

/// How many looks lie between two polls of a deadline. The abort word is across PCIe, which takes one poll
/// after the other: thousands of threads that poll as often as they look keep it busy for longer than the
/// wait itself takes, peers then wait for them and poll in their turn, and so on for ever.
#if defined(__CUDACC__)
constexpr uint32_t looks_between_polls = 4096;
#else
constexpr uint32_t looks_between_polls = 64;
#endif

/// Of one thread: looks until ready() holds or the wait must end. What came in time counts, even on the last
/// look.
template <class Ready>
CHORALE_FN Stop spin_until(const Group& group, const Deadline& deadline, const Ready& ready) {
  if (ready()) return Stop::none;
  Deadline limit = deadline;
  limit.until = deadline.started();
  for (uint32_t spin = 1;; ++spin) {
    if (limit.until != 0) {
      // A scheduler that parks us has to look at the clock as well.
      group.park([&ready, &limit]() -> bool { return ready() || limit.expired(); }, spin);
    } else {
      group.park(ready, spin);
    }
    if (ready()) return Stop::none;
    Stop stop = group.stopped();
    if (stop == Stop::none && spin % looks_between_polls == 0) stop = limit.poll();
    if (stop != Stop::none) return ready() ? Stop::none : stop;
  }
}

}  // namespace chorale
