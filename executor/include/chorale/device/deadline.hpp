#pragma once
// Every wait ends: when its condition holds, when its time is over, or when the world stops.

#include <cstddef>
#include <cstdint>

#include "chorale/device/atomics.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"

#if !defined(__CUDACC__)
#include <chrono>
#endif

namespace chorale {

/// Tells all threads that the world has stopped. Each rank of a world has one AbortWord, in memory that the
/// host and all its kernels see. It is zero while the world runs. The first one to stop the world sets the
/// reason that the others see.
struct alignas(64) AbortWord {
  uint32_t stop = 0;     ///< a Stop, written last
  uint32_t rank = 0;     ///< the rank to blame, valid once `stop` is not zero
  uint32_t claimed = 0;  ///< decides which of several host threads writes
};

/// Returns the time in nanoseconds of a monotonic clock.
CHORALE_FN uint64_t now_ns() {
#if defined(__CUDACC__)
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::steady_clock::now().time_since_epoch())
                      .count());
#endif
}

/// Stops the world with `reason` and blames `rank`, unless the world has already stopped. Returns true if
/// this call stopped it. Called by one thread.
CHORALE_FN bool raise_stop(AbortWord* word, Stop reason, uint32_t rank) {
#if defined(__CUDACC__)
  // The word is in host memory, where a read-modify-write of a GPU is usually not atomic. So one store writes
  // both reason and rank. If several GPUs raise at the same moment, the last one wins, and a reader between
  // their stores may combine one's rank with the other's reason.
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

/// Returns the time by now_ns() at `ns` nanoseconds from now. On overflow it returns the largest time, which
/// never comes.
CHORALE_FN uint64_t ns_from_now(uint64_t ns) {
  const uint64_t now = now_ns();
  return ns < ~uint64_t{0} - now ? now + ns : ~uint64_t{0};
}

/// Limits a wait. The default waits forever.
struct Deadline {
  AbortWord* shared = nullptr;  ///< polled during waits; null: no one can stop the wait
  uint64_t ticks = 0;           ///< the time that a wait may take, in nanoseconds; 0: no limit
  /// Holds the time, by now_ns(), at which all waits end. 0 means that start() was not called, so that each
  /// wait may take `ticks`.
  uint64_t until = 0;

  /// Starts the clock, so that several waits share one limit.
  CHORALE_FN void start() { until = ticks != 0 ? ns_from_now(ticks) : 0; }

  /// Returns the time when a wait that begins now must end: `until` if the clock was started, else `ticks`
  /// from now. 0 means never.
  CHORALE_FN uint64_t started() const { return until != 0 ? until : ticks != 0 ? ns_from_now(ticks) : 0; }

  CHORALE_FN bool expired() const { return until != 0 && now_ns() >= until; }

  /// Returns the reason to stop waiting now, or Stop::none. Called by one thread.
  CHORALE_FN Stop poll() const {
    if (shared) {
      const uint32_t stop = load_acquire(&shared->stop);
      if (stop != 0) return Stop(stop);
    }
    return expired() ? Stop::timed_out : Stop::none;
  }
};

/// Returns why the group has to stop, or Stop::none; the same in every thread. Synchronises.
CHORALE_FN Stop stop_for(const Group& group, const Deadline& deadline) {
  Stop stop = Stop::none;
  if (group.leader()) {
    stop = group.stopped();
    if (stop == Stop::none) stop = deadline.poll();
  }
  return group.agree(stop);
}

/// Sets the number of checks of a wait between two polls of its deadline and its abort word. A GPU reads the
/// abort word over PCIe, which serves one poll after the other. If thousands of threads polled at each check,
/// they would occupy PCIe for longer than the wait itself takes. Their peers would then wait longer and poll
/// more, and so on forever.
#if defined(__CUDACC__)
constexpr uint32_t looks_between_polls = 4096;
#else
constexpr uint32_t looks_between_polls = 64;
#endif

/// Spins until ready() holds or the wait must end, and returns why it ended. If ready() holds at the last
/// check, the result is Stop::none. Called by one thread.
template <class Ready>
CHORALE_FN Stop spin_until(const Group& group, const Deadline& deadline, const Ready& ready) {
  if (ready()) return Stop::none;
  Deadline limit = deadline;
  limit.until = deadline.started();
  for (uint32_t spin = 1;; ++spin) {
    if (limit.until != 0) {
      // A scheduler that parks this thread must check the clock too.
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
