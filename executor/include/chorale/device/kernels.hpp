#pragma once
// These kernels only send and receive; send(), recv() and sendrecv() of launch.hpp launch them. A kernel is a
// function object. Each thread of every group calls its `Stop operator()(group, deadline) const`.

#include <cstdint>

#include "chorale/device/tiles.hpp"

namespace chorale {

/// Sends `message` to `peer` over a link of any kind. Every group sends its share.
template <class T, class Produce>
struct SendKernel {
  EndpointTable table;
  Leg message;
  int32_t peer;
  Produce produce;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(peer, group.id);
    const Leg share = share_of(detail::typed<T>(message), group.id, group.count);
    return with_link(e, [&](auto fabric) {
      const Stop stop = send_tiles<T, decltype(fabric)>(group, e, share, produce, deadline);
      return stop != Stop::none ? stop : decltype(fabric)::drain(group, e, deadline);
    });
  }
};

/// Receives `message` from `peer`. Every group receives its share.
template <class T, class Consume>
struct RecvKernel {
  EndpointTable table;
  Leg message;
  int32_t peer;
  Consume consume;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& e = table.at(peer, group.id);
    const Leg share = share_of(detail::typed<T>(message), group.id, group.count);
    return with_link(
        e, [&](auto fabric) { return recv_tiles<T, decltype(fabric)>(group, e, share, consume, deadline); });
  }
};

/// Sends to rank `to` and receives from rank `from`, tile by tile in turn.
template <class T, class Produce, class Consume>
struct SendRecvKernel {
  EndpointTable table;
  Leg sent, received;
  int32_t to, from;
  Produce produce;
  Consume consume;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const Endpoint& there = table.at(to, group.id);
    const Endpoint& here = table.at(from, group.id);
    const Leg out = share_of(detail::typed<T>(sent), group.id, group.count);
    const Leg in = share_of(detail::typed<T>(received), group.id, group.count);
    return with_link(there, [&](auto send_fabric) {
      return with_link(here, [&](auto recv_fabric) {
        const Stop stop =
            sendrecv_tiles<T, decltype(send_fabric), Produce, Consume, None, decltype(recv_fabric)>(
                group, there, here, out, in, produce, consume, deadline);
        return stop != Stop::none ? stop : decltype(send_fabric)::drain(group, there, deadline);
      });
    });
  }
};

}  // namespace chorale
