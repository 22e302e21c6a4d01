/// \file
/// Launches kernels that only send and receive: send, recv and sendrecv. Include launch_cpu.hpp, or
/// launch.cuh in a CUDA source: each has launch(), which runs your own kernels as well, with the same
/// arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

#include "chorale/device/kernels.hpp"
#include "chorale/error.hpp"
#include "chorale/transport.hpp"

namespace chorale {

/// Sets blocks and threads. They change speed, never a result, but both ends of a link must have equally
/// many blocks.
struct LaunchConfig {
  uint32_t blocks = 8;
  uint32_t threads = 0;  ///< of a block; 0: 1 on the CPU, 256 on CUDA
};

/// Says where a kernel is enqueued: a cudaStream_t. On the CPU it is empty, because kernels run when they are
/// called.
struct Lane {
  void* stream = nullptr;
};

/// Names a launch in errors, and the peers that its blocks talk to (-1: none).
struct LaunchName {
  const char* what = "a kernel";
  int to = -1, from = -1;
  /// Tells what a block waits for, for errors on the CPU. If it is empty, errors tell how the block's links
  /// to `to` and `from` stand.
  std::function<std::string(uint32_t block)> of_block = {};
};

namespace detail {
/// Checks a message that is sent or received in elements of `element_bytes`, unless the message sets its own.
/// \throws UsageError as check_transfer(); also if there is no such peer, Leg::elem is no multiple of
///         `element_bytes` and not 1, an element would be cut, or a tile is longer than a slot
void check_message(const Transport& transport, const Leg& message, uint64_t element_bytes, int peer,
                   const LaunchConfig& config);

/// Returns the bytes of `elements` elements.
uint64_t bytes_of(uint64_t elements, uint64_t element_bytes);

/// Throws if a copy has no buffer. Your own hooks may need none.
template <class Hook, class Copy>
void check_buffer(const char* what, const void* data, uint64_t bytes) {
  if (std::is_same_v<Hook, Copy> && !data && bytes)
    throw UsageError(std::string(what) + ": the buffer of " + std::to_string(bytes) + " bytes is null");
}
}  // namespace detail

/// Sends n elements of type T to `peer`, which receives as many with as many blocks. T is the type that
/// travels.
/// \throws UsageError as check_transfer(); also for a message whose Leg::elem is no multiple of sizeof(T) and
///         not 1, whose elements are cut or whose tiles are longer than a slot, and if copies are to be made
///         and `data` is null; otherwise as launch()
template <class T, class Produce = CopyProduce>
void send(Transport& transport, const Leg& message, int peer, const Produce& produce = {},
          const LaunchConfig& config = {}, Lane lane = {}) {
  detail::check_message(transport, message, sizeof(T), peer, config);
  detail::check_buffer<Produce, CopyProduce>("send", message.in, message.bytes);
  launch(transport, SendKernel<T, Produce>{transport.table(), message, peer, produce}, config, lane,
         {"send", peer, -1});
}
template <class T, class Produce = CopyProduce>
void send(Transport& transport, const T* data, uint64_t n, int peer, const Produce& produce = {},
          const LaunchConfig& config = {}, Lane lane = {}) {
  Leg message;
  message.in = data;
  message.bytes = detail::bytes_of(n, sizeof(T));
  send<T>(transport, message, peer, produce, config, lane);
}

template <class T, class Consume = CopyConsume>
void recv(Transport& transport, const Leg& message, int peer, const Consume& consume = {},
          const LaunchConfig& config = {}, Lane lane = {}) {
  detail::check_message(transport, message, sizeof(T), peer, config);
  detail::check_buffer<Consume, CopyConsume>("recv", message.out, message.bytes);
  launch(transport, RecvKernel<T, Consume>{transport.table(), message, peer, consume}, config, lane,
         {"recv", -1, peer});
}
template <class T, class Consume = CopyConsume>
void recv(Transport& transport, T* data, uint64_t n, int peer, const Consume& consume = {},
          const LaunchConfig& config = {}, Lane lane = {}) {
  Leg message;
  message.out = data;
  message.bytes = detail::bytes_of(n, sizeof(T));
  recv<T>(transport, message, peer, consume, config, lane);
}

/// Sends n elements to `to` and receives as many from `from` (-1: from `to`).
template <class T, class Produce = CopyProduce, class Consume = CopyConsume>
void sendrecv(Transport& transport, const T* in, T* out, uint64_t n, int to, int from = -1,
              const Produce& produce = {}, const Consume& consume = {}, const LaunchConfig& config = {},
              Lane lane = {}) {
  if (from < 0) from = to;
  transport.endpoint(to);
  transport.endpoint(from);
  check_transfer(transport, n, sizeof(T), config.blocks, Form::interleaved);
  detail::check_buffer<Produce, CopyProduce>("sendrecv", in, n * sizeof(T));
  detail::check_buffer<Consume, CopyConsume>("sendrecv", out, n * sizeof(T));
  Leg message;
  message.in = in;
  message.out = out;
  message.bytes = n * sizeof(T);
  message.elem = sizeof(T);
  launch(transport,
         SendRecvKernel<T, Produce, Consume>{transport.table(), message, message, to, from, produce, consume},
         config, lane, {"sendrecv", to, from});
}

}  // namespace chorale
