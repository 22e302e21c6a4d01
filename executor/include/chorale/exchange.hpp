/// \file
/// Exchange moves messages whose sizes the host knows, on GPUs and on the CPU. docs/calls.md says when calls
/// return.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "chorale/config.hpp"
#include "chorale/error.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Sets up an Exchange; the same on all ranks. With 0 the library chooses. An exchange takes about ranks *
/// blocks_per_peer * slots * slot_bytes of memory on each rank, and on GPUs up to ranks * blocks_per_peer *
/// 128 KiB more for packets.
struct ExchangeOptions {
  uint64_t slot_bytes = 0;  ///< of a ring's slot, at least 16; default: 128 KiB
  uint32_t slots = 0;       ///< of a ring, at most 256; default: 4
  /// The most thread blocks that work on one peer and direction. The default is 1 on the CPU. On GPUs it is
  /// up to 32, and no more than the GPU holds at a time; it is above 16 only if the blocks of all peers in
  /// both directions have a multiprocessor each.
  uint32_t blocks_per_peer = 0;
};

struct SendTo {
  const void* data = nullptr;  ///< any alignment; multiples of 16 are fast. May be null if there are no bytes
  uint64_t bytes = 0;
  int peer = -1;
};
struct RecvFrom {
  void* data = nullptr;
  uint64_t bytes = 0;
  int peer = -1;
};

/// Sends and receives messages between this rank and the others of its world. Messages between two ranks are
/// matched in their order, as with ncclSend() and ncclRecv(): the first that one sends is the first that the
/// other receives, whichever of its calls names it. Both name the same size.
///
/// Use it from one thread at a time: an exchange() beside another one throws UsageError. The world must
/// outlive it and must not be moved meanwhile. Peers write into its memory, so destroy it after the launches
/// of all ranks have ended (World::barrier()).
class Exchange {
 public:
  /// Makes the exchange; collective. On CUDA it takes the current GPU.
  /// \throws UsageError for options that cannot be, RunError mismatch if they differ; both on all ranks;
  ///         otherwise as Executor
  explicit Exchange(World& world, const ExchangeOptions& options = {}, const Config& config = Config::load());
  ~Exchange();
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;

  /// Moves all of `sends` and `recvs` at once. No message waits for one of another peer or direction, so a
  /// rank may send to and receive from everybody, whatever the sizes. The messages of one peer and direction
  /// go in the order of the list. Received memory must not overlap memory that is sent or received in the
  /// same call, except for a message to oneself that stays in place. A message to oneself is received in the
  /// same call.
  ///
  /// A sender may be ahead of its receiver by two messages of one peer that are short (up to slot_bytes and
  /// 16 KiB for each of the blocks), or by what the ring holds of a long one. The next message waits.
  ///
  /// On the CPU it returns when this rank's messages have ended: what it receives is there, what it sends may
  /// be freed, and errors are thrown. With CUDA it only enqueues on `stream` (a cudaStream_t; null: the
  /// default stream), one kernel for up to 160 messages. Graphs may capture and replay it. The next call of
  /// any function here throws errors that come later. Calls that have a peer and direction in common must be
  /// on one stream, or ordered by the caller. Other calls may run at the same time.
  ///
  /// On CUDA a launch whose peer is late waits on the GPU, and CUDA may make other work wait for it. Streams
  /// may share a queue, and loading a kernel at its first use may need an idle GPU (CUDA_MODULE_LOADING=EAGER
  /// loads all at the start). So first enqueue what the peer needs from this rank before it comes.
  ///
  /// If two ranks name different sizes, all ranks get an error that names both.
  /// \throws UsageError for a peer that does not exist, a null pointer, memory that a GPU cannot read,
  ///         received memory that is also used by another message, or messages to oneself whose sends and
  ///         receives differ
  /// \throws RunError aborted if two ranks name different sizes; timed_out if a peer does not come; deadlock
  ///         if one is detected; otherwise as Executor::execute(). After it, call World::reset() and
  ///         reset()
  void exchange(std::span<const SendTo> sends, std::span<const RecvFrom> recvs, void* stream = nullptr);

  /// Sends or receives one message, as exchange() does.
  void send(const void* data, uint64_t bytes, int peer, void* stream = nullptr);
  void recv(void* data, uint64_t bytes, int peer, void* stream = nullptr);

  /// Throws the error of an earlier call, if there was one. Never blocks.
  void check();

  /// Waits for `stream`, then calls check(). On the CPU nothing is left to wait for.
  void synchronize(void* stream = nullptr);

  /// Makes the rings new, so that the remains of a stopped call are not taken for data. Collective; call it
  /// after World::reset(). Graphs captured before stay valid.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale
