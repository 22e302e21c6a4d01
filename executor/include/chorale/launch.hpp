/// \file
/// send(), recv() and sendrecv() launch kernels that only send and receive. Include launch_cpu.hpp as well,
/// or launch.cuh in a CUDA source. Both define launch(), which also runs your kernels, with the same
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

/// Sets the blocks and threads of a launch. They change its speed, never its result. Both ends of a link must
/// use the same number of blocks.
struct LaunchConfig {
  uint32_t blocks = 8;
  uint32_t threads = 0;  ///< threads per block; 0: 1 on the CPU, 256 on CUDA
};

/// Names the stream on which a kernel is enqueued, a cudaStream_t. On the CPU it is empty, because kernels
/// run when they are called.
struct LaunchStream {
  void* stream = nullptr;
};
/// Is the old name of LaunchStream. It stays for one version.
using Lane [[deprecated("use LaunchStream")]] = LaunchStream;

/// Describes a launch for error messages: its name, and the peers that its blocks talk to (-1: none).
struct LaunchName {
  const char* what = "a kernel";
  int to = -1, from = -1;
  /// Returns what a block waits for, for errors on the CPU. If it is empty, errors describe the state of the
  /// block's links to `to` and `from`.
  std::function<std::string(uint32_t block)> of_block = {};
};

namespace detail {
/// Checks a message that is sent or received in elements of `element_bytes`. Leg::elem of the message
/// overrides that size.
/// \throws UsageError as check_transfer(); also if there is no such peer, if Leg::elem is neither 1 nor a
///         multiple of `element_bytes`, if the message would end inside an element, or if a tile is longer
///         than a slot
void check_message(const Transport& transport, const Leg& message, uint64_t element_bytes, int peer,
                   const LaunchConfig& config);

/// Returns the bytes of `elements` elements.
uint64_t bytes_of(uint64_t elements, uint64_t element_bytes);

/// Throws if a copy has no buffer. Hooks of the caller may need none.
template <class Hook, class Copy>
void check_buffer(const char* what, const void* data, uint64_t bytes) {
  if (std::is_same_v<Hook, Copy> && !data && bytes)
    throw UsageError(std::string(what) + ": the buffer of " + std::to_string(bytes) + " bytes is null");
}
}  // namespace detail

/// Sends n elements of type T to `peer`. The peer must receive the same number of elements with the same
/// number of blocks. T is the element type on the link. For example:
///
///     auto transport = direct_rendezvous(world, {.per_peer_bytes = 64 << 20});
///     if (world.rank() == 0) send(*transport, in, n, 1);
///     if (world.rank() == 1) recv(*transport, out, n, 0);
///
/// \throws UsageError as check_transfer(); also if Leg::elem is neither 1 nor a multiple of sizeof(T), if the
///         message would end inside an element, if a tile is longer than a slot, or if the hook copies and
///         `data` is null; otherwise as launch()
template <class T, class Produce = CopyProduce, class = detail::Side>
void send(Transport& transport, const Leg& message, int peer, const Produce& produce = {},
          const LaunchConfig& config = {}, LaunchStream on = {}) {
  detail::check_message(transport, message, sizeof(T), peer, config);
  detail::check_buffer<Produce, CopyProduce>("send", message.in, message.bytes);
  launch(transport, SendKernel<T, Produce>{transport.table(), message, peer, produce}, config, on,
         {"send", peer, -1});
}
template <class T, class Produce = CopyProduce, class = detail::Side>
void send(Transport& transport, const T* data, uint64_t n, int peer, const Produce& produce = {},
          const LaunchConfig& config = {}, LaunchStream on = {}) {
  Leg message;
  message.in = data;
  message.bytes = detail::bytes_of(n, sizeof(T));
  send<T>(transport, message, peer, produce, config, on);
}

/// Receives n elements of type T that `peer` sends.
/// \throws as send()
template <class T, class Consume = CopyConsume, class = detail::Side>
void recv(Transport& transport, const Leg& message, int peer, const Consume& consume = {},
          const LaunchConfig& config = {}, LaunchStream on = {}) {
  detail::check_message(transport, message, sizeof(T), peer, config);
  detail::check_buffer<Consume, CopyConsume>("recv", message.out, message.bytes);
  launch(transport, RecvKernel<T, Consume>{transport.table(), message, peer, consume}, config, on,
         {"recv", -1, peer});
}
template <class T, class Consume = CopyConsume, class = detail::Side>
void recv(Transport& transport, T* data, uint64_t n, int peer, const Consume& consume = {},
          const LaunchConfig& config = {}, LaunchStream on = {}) {
  Leg message;
  message.out = data;
  message.bytes = detail::bytes_of(n, sizeof(T));
  recv<T>(transport, message, peer, consume, config, on);
}

/// Sends n elements to `to` and receives n elements from `from` (-1: from `to`) at the same time, so that
/// neither waits for the other.
/// \throws UsageError as check_transfer(); also if there is no such peer, or if a hook copies and its buffer
///         is null; otherwise as launch()
template <class T, class Produce = CopyProduce, class Consume = CopyConsume, class = detail::Side>
void sendrecv(Transport& transport, const T* in, T* out, uint64_t n, int to, int from = -1,
              const Produce& produce = {}, const Consume& consume = {}, const LaunchConfig& config = {},
              LaunchStream on = {}) {
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
         config, on, {"sendrecv", to, from});
}

}  // namespace chorale
