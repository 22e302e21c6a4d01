#pragma once
// Kernels ask a proxy on the host to move data and to signal the peer. They write these orders to a ring in
// memory, from which the proxy takes them.

#include <cstdint>

#include "chorale/device/atomics.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/macros.hpp"

namespace chorale {

/// Asks the proxy to do one thing. For an order of kind `data`, the data is in the sender's copy of the ring,
/// at `begin` .. `end` of the stream, within one slot.
struct PortRequest {
  enum class Kind : uint32_t { data, free };

  Kind kind;
  int32_t peer;
  uint32_t channel;
  uint64_t begin, end;  ///< for `free` only `end`: the position up to which the peer's data has been read
  uint64_t note;        ///< for `data`: goes to the peer's data_ready.note
};

/// Holds a request in its slot of the ring.
struct alignas(64) PortOrder : PortRequest {
  uint64_t turn;  ///< the ticket plus one, written last
};
static_assert(sizeof(PortOrder) == 64);

/// Describes a rank's ring of orders. Any number of groups push to it; one proxy takes from it.
struct PortQueue {
  PortOrder* orders = nullptr;     ///< CUDA: in host memory
  uint64_t slots = 0;              ///< a power of two
  uint64_t* head = nullptr;        ///< tickets given out; CUDA: in device memory
  const uint64_t* tail = nullptr;  ///< orders taken; CUDA: in host memory

  /// CPU only; may be null. Called with `announced` before an order becomes visible, so that a proxy at work
  /// never looks like a deadlock.
  void (*announce)(void* of) = nullptr;
  void* announced = nullptr;
};

/// Waits for room in the ring and pushes an order, after everything that the group did. Called by all threads
/// of the group, and synchronises them. After a stop the proxy does not see the order.
CHORALE_COLD Stop push_order(Group group, PortQueue queue, PortRequest request, Deadline deadline) {
  group.sync();
  Stop stop = Stop::none;
  if (group.leader()) {
    group.step();
#if !defined(__CUDACC__)
    if (queue.announce) queue.announce(queue.announced);
#endif
    const uint64_t ticket = add_relaxed(queue.head, uint64_t{1});
    const uint64_t slots = queue.slots;
    const uint64_t* const tail = queue.tail;
    const auto room = [ticket, slots, tail]() -> bool { return ticket - load_acquire(tail) < slots; };
    stop = spin_until(group, deadline, room);
    if (stop == Stop::none) {
      PortOrder& slot = queue.orders[ticket & (slots - 1)];
      static_cast<PortRequest&>(slot) = request;
      group.step();
      store_release(&slot.turn, ticket + 1);
    }
  }
  return group.agree(stop);
}

}  // namespace chorale
