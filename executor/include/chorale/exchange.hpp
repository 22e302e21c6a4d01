/// \file
/// An Exchange sends and receives messages between ranks, on GPUs and on the CPU. The host knows their sizes.
/// docs/calls.md says when calls return.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "chorale/config.hpp"
#include "chorale/error.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Sets up an Exchange. All ranks must pass the same options. Where an option is 0, the library chooses its
/// value. An exchange takes about ranks * blocks_per_peer * slots * slot_bytes of memory on each rank. On
/// GPUs it takes up to ranks * blocks_per_peer * 128 KiB more for packets.
struct ExchangeOptions {
  uint64_t slot_bytes = 0;  ///< the bytes of a ring's slot, at least 16; default: 128 KiB
  uint32_t slots = 0;       ///< the slots of a ring, at most 256; default: 4
  /// Limits the thread blocks that work on one peer and direction. The default is 1 on the CPU. On GPUs the
  /// default is at most 32, and no more than the GPU holds at a time. It is above 16 only if each block, of
  /// all peers and both directions, gets a multiprocessor to itself. Config::max_blocks limits the blocks for
  /// all peers together.
  uint32_t blocks_per_peer = 0;
};

/// Describes a message to `peer`.
struct SendTo {
  const void* data = nullptr;  ///< any alignment; multiples of 16 are fast. May be null if bytes is 0
  uint64_t bytes = 0;
  int peer = -1;
};
/// Describes a message from `peer`.
struct RecvFrom {
  void* data = nullptr;  ///< as SendTo::data
  uint64_t bytes = 0;
  int peer = -1;
};

/// Sends and receives messages between this rank and the others of its world. For example, this passes data
/// around a ring:
///
///     Exchange exchange(world);
///     const SendTo send{out, bytes, (world.rank() + 1) % world.ranks()};
///     const RecvFrom recv{in, bytes, (world.rank() + world.ranks() - 1) % world.ranks()};
///     exchange.exchange({&send, 1}, {&recv, 1}, stream);
///
/// Messages between two ranks match in order, as with ncclSend() and ncclRecv(): the first message that one
/// rank sends is the first that the other receives. It does not matter how the messages are spread over
/// calls. Sender and receiver must name the same size.
///
/// Use it from one thread at a time: an exchange() that runs while another one runs throws UsageError. The
/// world must outlive it; do not move the world while this object exists. Peers write into its memory, so
/// destroy it after the launches of all ranks have ended (World::barrier()).
class Exchange {
 public:
  /// Makes the exchange; collective. On CUDA it works on the current GPU.
  /// \throws UsageError, on all ranks, for options that are out of range; otherwise as Executor
  /// \throws RunError mismatch, on all ranks, if the options differ; resources if memory runs out
  explicit Exchange(World& world, const ExchangeOptions& options = {}, const Config& config = Config::load());
  ~Exchange();
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;

  /// Moves all of `sends` and `recvs` at once. No message waits for one of another peer or direction, so a
  /// rank may send to and receive from all ranks, whatever the sizes. The messages of one peer and direction
  /// move in the order of the list. Received memory must not overlap memory that is sent or received in the
  /// same call. The only exception is a message from a rank to itself that stays in place. When a rank sends
  /// a message to itself, the same call must receive it.
  ///
  /// A sender can run ahead of its receiver by two short messages per peer. A message is short if it has at
  /// most slot_bytes, and at most 16 KiB per block. For a longer message the sender can run ahead by the
  /// bytes that the ring holds. After that the sender waits.
  ///
  /// On the CPU it returns when this rank's messages have ended: the received data is there, you may free the
  /// sent data, and errors have been thrown. With CUDA it only enqueues on `stream` (a cudaStream_t; null:
  /// the default stream), one kernel for up to 160 messages. Graphs may capture and replay it. Errors that
  /// come later are thrown by your next call of any function of this class. Calls that share a peer and a
  /// direction must be on one stream, or you must order them. Other calls may run at the same time.
  ///
  /// On CUDA, when a peer is late, the launch waits on the GPU, and CUDA may hold back other work until the
  /// launch ends. Streams may share a queue, and loading a kernel at its first use may need an idle GPU
  /// (CUDA_MODULE_LOADING=EAGER loads all kernels at the start). So if the peer needs work of this rank
  /// before it can make its call, enqueue that work first.
  ///
  /// If two ranks name different sizes, all ranks get an error that names both.
  /// \throws UsageError for a peer that does not exist, a null pointer, memory that a GPU cannot read,
  ///         received memory that another message also uses, or messages of a rank to itself whose sends and
  ///         receives differ
  /// \throws RunError aborted if two ranks name different sizes; timed_out if a peer does not make its call
  ///         in time; deadlock if one is detected; otherwise as Executor::execute(). After a RunError, call
  ///         World::reset() and then reset()
  void exchange(std::span<const SendTo> sends, std::span<const RecvFrom> recvs, void* stream = nullptr);

  /// Send or receive one message, as exchange() does.
  void send(const void* data, uint64_t bytes, int peer, void* stream = nullptr);
  void recv(void* data, uint64_t bytes, int peer, void* stream = nullptr);

  /// Throws the error of an earlier call, if there was one. Never blocks.
  void check();

  /// Waits for `stream`, then calls check(). On the CPU nothing is left to wait for.
  void synchronize(void* stream = nullptr);

  /// Clears the rings, so that leftovers of a stopped call are not taken for data. Collective; call it after
  /// World::reset(). Graphs that you captured before stay valid.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale
