#pragma once
// A fabric is the medium over which the data of a kernel travels. Each fabric is a struct, and each call
// chooses one by a template argument. All device code that depends on the fabric is here.
//
//   stage(e, position)     returns where to write the data that is sent at this position of the stream
//   land(e, position)      returns where the data received at this position is
//   put, get               move one vector to and from such a region
//   signal(...)            tells the peer that it may see what the group staged up to here
//   wait(...)              waits until the peer has signalled
//   signal_free(...)       tells the peer that the group has read the received data up to here, so that the
//                          peer may write there again. `stored` promises that each thread has stored what it
//                          read, so that the credit may be relaxed
//   wait_free(...)         waits until the peer has given this credit
//   drain(...)             waits until no sent data is still read from this rank's memory
//
// All threads of the group call each of them. If one returns a Stop other than none, it has told the peer
// nothing.

#include <cstdint>
#include <string>
#include <type_traits>

#include "chorale/device/checked.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/divide.hpp"
#include "chorale/device/link.hpp"
#include "chorale/device/port.hpp"
#include "chorale/device/signal.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

/// Moves data through the peer's memory, which is mapped here.
struct Direct {
  CHORALE_FN static char* stage(const Endpoint& e, uint64_t position) {
    return e.send_dst + detail::modulo(position, e.window);
  }
  CHORALE_FN static const char* land(const Endpoint& e, uint64_t position) {
    return e.recv_src + detail::modulo(position, e.window);
  }

  /// Stores the first n elements of `values` at vector `index` of a region. get() loads them and sets the
  /// rest to zero.
  template <class T, int N>
  CHORALE_FN static void put(char* region, uint64_t index, const Pack<T, N>& values, uint32_t n = N) {
    static_assert(sizeof values == unit_bytes, "regions are read and written by units");
    store_unit(region + index * unit_bytes, unit_of<T>(values), n * uint32_t(sizeof(T)));
  }
  template <class T>
  CHORALE_FN static Pack<T, int(unit_bytes / sizeof(T))> get(const char* region, uint64_t index,
                                                             uint32_t n = unit_bytes / sizeof(T)) {
    return elements_of<T>(load_unit(region + index * unit_bytes, n * uint32_t(sizeof(T))));
  }

  /// Tells the peer that it has everything before position `upto`. `begin` is the position that this group
  /// has signalled before. `note` is not 0 with the first signal of a message; see link.hpp.
  CHORALE_FN static Stop signal(const Group& group, const Endpoint& e, uint64_t begin, uint64_t upto,
                                uint64_t note, const Deadline&) {
    (void)begin;
    if (note != 0 && group.leader()) store_relaxed(&e.remote->data_ready.note, note);
    signal_set(group, &e.remote->data_ready, upto);
    return Stop::none;
  }
  CHORALE_FN static Stop wait(const Group& group, const Endpoint& e, uint64_t upto,
                              const Deadline& deadline) {
    return wait_until(group, &e.local->data_ready, Cmp::ge, upto, deadline);
  }
  CHORALE_FN static Stop signal_free(const Group& group, const Endpoint& e, uint64_t upto, const Deadline&,
                                     bool stored = false) {
    if (stored) {
      group.sync();
      if (!group.leader()) return Stop::none;
      group.step();
      give_credit(&e.remote->slot_free.value, upto);
    } else {
      signal_set(group, &e.remote->slot_free, upto);
    }
    return Stop::none;
  }
  CHORALE_FN static Stop wait_free(const Group& group, const Endpoint& e, uint64_t upto,
                                   const Deadline& deadline) {
    return await_credit(group, &e.local->slot_free.value, upto, deadline);
  }
  CHORALE_FN static Stop drain(const Group&, const Endpoint&, const Deadline&) { return Stop::none; }
};

/// Links this rank to itself: it owns the ring and the counters, and is its own peer. It works as Direct
/// does, so one group of the rank may send to another.
struct Self : Direct {};

/// Moves data by a proxy, which copies it from a ring in this rank's memory and tells the peer. The peer's
/// credit comes back only after the peer has read the data, so it also says that the sender's ring is free
/// again.
struct Port {
  CHORALE_FN static char* stage(const Endpoint& e, uint64_t position) { return Direct::stage(e, position); }
  CHORALE_FN static const char* land(const Endpoint& e, uint64_t position) {
    return Direct::land(e, position);
  }
  template <class T, int N>
  CHORALE_FN static void put(char* region, uint64_t index, const Pack<T, N>& values, uint32_t n = N) {
    Direct::put(region, index, values, n);
  }
  template <class T>
  CHORALE_FN static Pack<T, int(unit_bytes / sizeof(T))> get(const char* region, uint64_t index,
                                                             uint32_t n = unit_bytes / sizeof(T)) {
    return Direct::get<T>(region, index, n);
  }

  CHORALE_FN static Stop signal(const Group& group, const Endpoint& e, uint64_t begin, uint64_t upto,
                                uint64_t note, const Deadline& deadline) {
    const PortRequest request{PortRequest::Kind::data, e.peer, e.channel, begin, upto, note};
    const Stop stop = push_order(group, *e.port, request, deadline);
    uint64_t* const orders = &e.local->cursor.orders;  // used by the leader alone
    if (stop == Stop::none && group.leader()) store_relaxed(orders, load_relaxed(orders) + 1);
    return stop;
  }
  CHORALE_FN static Stop wait(const Group& group, const Endpoint& e, uint64_t upto,
                              const Deadline& deadline) {
    return wait_until(group, &e.told->data_ready, Cmp::ge, upto, deadline);
  }
  CHORALE_FN static Stop signal_free(const Group& group, const Endpoint& e, uint64_t upto,
                                     const Deadline& deadline, bool = false) {
    const PortRequest request{PortRequest::Kind::free, e.peer, e.channel, 0, upto, 0};
    return push_order(group, *e.port, request, deadline);
  }
  CHORALE_FN static Stop wait_free(const Group& group, const Endpoint& e, uint64_t upto,
                                   const Deadline& deadline) {
    return await_credit(group, &e.told->slot_free.value, upto, deadline);
  }
  CHORALE_FN static Stop drain(const Group& group, const Endpoint& e, const Deadline& deadline) {
    const uint64_t *const left = &e.told->left.value, *const orders = &e.local->cursor.orders;
    return detail::leader_awaits(
        group, deadline, [left, orders]() -> bool { return load_acquire(left) >= load_relaxed(orders); });
  }
};

/// Is true if signal() and signal_free() of a fabric never stop, because they write to the peer directly. A
/// fabric that uses a proxy may have to wait for room in the ring of orders.
template <class Ops>
inline constexpr bool signals_at_once = std::is_base_of_v<Direct, Ops>;

namespace detail {
/// Ends a message that began at `start` of a stream that is sent or received. Called by one thread. If
/// another group used the same channel at the same time, both began at the same position, and this call
/// refuses.
CHORALE_FN void end_message(const Endpoint& e, uint64_t* position, uint64_t start, uint64_t end) {
  if (CHORALE_CHECKED && load_relaxed(position) != start) {
#if defined(__CUDACC__)
    (void)e;
    refuse("two groups use one channel at the same time");
#else
    refuse("two groups of rank " + std::to_string(e.self) + " use channel " + std::to_string(e.channel) +
           " to rank " + std::to_string(e.peer) +
           " at the same time; give each part of a split its own channels: EndpointTable::from_channel()");
#endif
  }
  store_relaxed(position, end);
}

/// Signals by give() and, if this signal is the last of a message, moves the position of the stream from
/// `start` to `end`. After a stop the position is unchanged.
template <class Ops, class Give>
CHORALE_FN Stop signal_and_advance(const Group& group, const Endpoint& e, bool last, uint64_t* position,
                                   uint64_t start, uint64_t end, const Give& give) {
  if constexpr (signals_at_once<Ops>) {
    // This comes before the signal, because the signal synchronises and so shows the new position to the
    // group.
    if (last && group.leader()) end_message(e, position, start, end);
    return give();
  } else {
    const Stop stop = give();
    if (!last || stop != Stop::none) return stop;
    if (group.leader()) end_message(e, position, start, end);
    group.sync();  // makes the change visible to all threads in the next message
    return Stop::none;
  }
}

#define CHORALE_LINK(name, fabric, ring) \
  static_assert(std::is_same_v<fabric, ring> || std::is_base_of_v<ring, fabric>);
#include "chorale/device/links.def"

#if !defined(__CUDACC__)
/// Returns "Port": the name of the fabric for a link of this kind.
inline const char* fabric_of(LinkKind of) {
#define CHORALE_LINK(name, fabric, ring) \
  if (of == LinkKind::name) return #fabric;
#include "chorale/device/links.def"
  return "of no row";
}

template <class Ops>
const char* fabric_name() {
#define CHORALE_LINK(name, fabric, ring) \
  if (std::is_same_v<Ops, fabric>) return #fabric;
#include "chorale/device/links.def"
  return "another";
}
#endif
}  // namespace detail

/// Returns whether this fabric fits the link of the endpoint.
template <class Ops>
CHORALE_FN bool fits(const Endpoint& e) {
#define CHORALE_LINK(name, fabric, ring) \
  if (e.kind == LinkKind::name) return std::is_base_of_v<ring, Ops>;
#include "chorale/device/links.def"
  return false;
}

/// Calls f with the fabric of the endpoint's link, such as f(Port{}), and returns its result. With it one
/// kernel works with links of all kinds.
template <class F>
CHORALE_FN decltype(auto) with_link(const Endpoint& e, F&& f) {
#define CHORALE_LINK(name, fabric, ring) \
  if (!std::is_same_v<fabric, Direct> && e.kind == LinkKind::name) return f(fabric{});
#include "chorale/device/links.def"
  return f(Direct{});
}

}  // namespace chorale
