#pragma once
// Groups wait for each other by signals, barriers and counting semaphores.
//
// The pattern is always the same. A poster's threads synchronise, then its leader posts with release order at
// system scope. So a reader that sees the post sees all earlier writes of these threads. A waiter's leader
// checks with acquire order, then its threads synchronise, so all of them see what came before the post.
// Counts only grow, so a replay needs no reset. A wait returns the same verdict in every thread of its group.
// After any verdict but Stop::none, do not use the data and do not send anything.

#include <cstdint>

#include "chorale/device/atomics.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"

namespace chorale {

/// Holds a counter that a peer writes and its owner waits for. It has a separate cache line, so that polling
/// does not slow down accesses to other data.
struct alignas(128) Signal {
  uint64_t value = 0;
  uint64_t note = 0;  ///< for checks in debug builds: written before `value`
};

enum class Cmp : uint8_t { eq, ne, lt, le, gt, ge };

/// Returns whether `seen cmp wanted`.
CHORALE_HD bool compare(uint64_t seen, Cmp cmp, uint64_t wanted) {
  switch (cmp) {
    case Cmp::eq:
      return seen == wanted;
    case Cmp::ne:
      return seen != wanted;
    case Cmp::lt:
      return seen < wanted;
    case Cmp::le:
      return seen <= wanted;
    case Cmp::gt:
      return seen > wanted;
    case Cmp::ge:
      return seen >= wanted;
  }
  return false;
}

// A credit says how much a group has read, so that the peer may write there again. It publishes no data. On
// CUDA it may be relaxed, which waits for nothing. A release would first wait until all the group's own
// writes have arrived, also at other GPUs. C++ has no weaker order that ends reads, so on the CPU credits
// release and acquire. Relaxed signals are such credits. docs/memory-orders.md says when a credit is right.

/// Gives a credit. Called by one thread, after its group has synchronised. Before that, each thread must have
/// compared or stored everything that it read.
CHORALE_FN void give_credit(uint64_t* at_peer, uint64_t count) {
#if defined(__CUDACC__)
  store_relaxed(at_peer, count);
#else
  store_release(at_peer, count);
#endif
}

/// Adds to a credit. Called as give_credit() is.
CHORALE_FN void add_credit(uint64_t* at_peer, uint64_t addend) {
#if defined(__CUDACC__)
  post_relaxed(at_peer, addend);
#else
  post_release(at_peer, addend);
#endif
}

/// Returns the last credit that a peer gave. Called by one thread. A write that reuses the space must depend
/// on the credit.
CHORALE_FN uint64_t seen_credit(const uint64_t* mine) {
#if defined(__CUDACC__)
  return load_relaxed(mine);
#else
  return load_acquire(mine);
#endif
}

/// Sets the peer's signal to `value`, after everything that the group did. Only one group may set a signal.
/// With `relaxed` it orders nothing and does not synchronise the group.
CHORALE_FN void signal_set(const Group& group, Signal* at_peer, uint64_t value, bool relaxed = false) {
  if (!relaxed) group.sync();
  if (!group.leader()) return;
  group.step();
  if (relaxed) {
    give_credit(&at_peer->value, value);
  } else {
    store_release(&at_peer->value, value);
  }
}

/// Adds `addend` to the peer's signal, after everything that the group did. Any number of groups may add.
/// `relaxed` is as in signal_set().
CHORALE_FN void signal_add(const Group& group, Signal* at_peer, uint64_t addend = 1, bool relaxed = false) {
  if (!relaxed) group.sync();
  if (!group.leader()) return;
  group.step();
  if (relaxed) {
    add_credit(&at_peer->value, addend);
  } else {
    post_release(&at_peer->value, addend);
  }
}

namespace detail {
/// Waits in the leader until ready() holds, and returns its verdict to all. Synchronises the group.
template <class Ready>
CHORALE_FN Stop leader_awaits(const Group& group, const Deadline& deadline, const Ready& ready) {
  Stop stop = Stop::none;
  if (group.leader()) {
    group.step();
    stop = spin_until(group, deadline, ready);
  }
  return group.agree(stop);
}
}  // namespace detail

/// Waits until the signal compares to `value` as `cmp` says: `mine->value cmp value`. Synchronises the group.
/// With `relaxed`, the poster's earlier writes need not be visible afterwards.
CHORALE_FN Stop wait_until(const Group& group, const Signal* mine, Cmp cmp, uint64_t value,
                           const Deadline& deadline = {}, bool relaxed = false) {
  return detail::leader_awaits(group, deadline, [mine, cmp, value, relaxed]() -> bool {
    return compare(relaxed ? seen_credit(&mine->value) : load_acquire(&mine->value), cmp, value);
  });
}

/// Waits until a peer's credit is at least `count`. Synchronises the group.
CHORALE_FN Stop await_credit(const Group& group, const uint64_t* mine, uint64_t count,
                             const Deadline& deadline) {
  return detail::leader_awaits(group, deadline,
                               [mine, count]() -> bool { return seen_credit(mine) >= count; });
}

/// Counts the peers that have arrived. It is in the memory of the rank that waits. Only the waiter uses
/// `expected`.
struct alignas(128) Barrier {
  Signal arrived;
  Signal expected;
};

/// Arrives at a peer's barrier, after everything that the group did.
CHORALE_FN void arrive(const Group& group, Barrier* at_peer) { signal_add(group, &at_peer->arrived); }

/// Waits for `arrivals` arrivals, beyond those that earlier waits have counted. Only one group may wait at a
/// barrier.
CHORALE_FN Stop wait(const Group& group, Barrier* mine, const Deadline& deadline = {},
                     uint64_t arrivals = 1) {
  // Only the leader uses `expected`, so it needs no memory order.
  Stop stop = Stop::none;
  if (group.leader()) {
    group.step();
    const uint64_t goal = load_relaxed(&mine->expected.value) + arrivals;
    const auto came = [mine, goal]() -> bool { return load_acquire(&mine->arrived.value) >= goal; };
    stop = spin_until(group, deadline, came);
    if (stop == Stop::none) store_relaxed(&mine->expected.value, goal);
  }
  return group.agree(stop);
}

/// Counts permits that any group may release and any group may acquire.
struct alignas(128) Semaphore {
  uint64_t permits = 0;
};

/// Adds permits, after everything that the group did.
CHORALE_FN void semaphore_release(const Group& group, Semaphore* semaphore, uint64_t permits = 1) {
  group.sync();
  if (!group.leader()) return;
  group.step();
  post_release(&semaphore->permits, permits);
}

/// Waits for one permit and takes it; takes none if it stops. It takes the permit by compare-and-swap from a
/// positive count, so the count never falls below zero. Afterwards the group sees the earlier writes of all
/// groups whose permits were counted then, because all releases are read-modify-writes and so form one
/// release sequence.
CHORALE_FN Stop semaphore_acquire(const Group& group, Semaphore* semaphore, const Deadline& deadline = {}) {
  Stop stop = Stop::none;
  if (group.leader()) {
    group.step();
    Deadline limit = deadline;
    limit.until = deadline.started();
    const auto positive = [semaphore]() -> bool { return load_relaxed(&semaphore->permits) != 0; };
    for (;;) {
      stop = spin_until(group, limit, positive);
      if (stop != Stop::none) break;
      const uint64_t seen = load_relaxed(&semaphore->permits);
      if (seen != 0 && compare_exchange_acquire(&semaphore->permits, seen, seen - 1)) break;
    }
  }
  return group.agree(stop);
}

}  // namespace chorale
