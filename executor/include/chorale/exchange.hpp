/// \file
/// Exchange: messages whose sizes the host knows, on GPUs and on the CPU. docs/calls.md: when calls return.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "chorale/config.hpp"
#include "chorale/error.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// What an exchange is made of; 0: chosen by the library. The same on all ranks. It takes about
/// ranks * blocks_per_peer * slots * slot_bytes of memory on each rank, on GPUs up to
/// ranks * blocks_per_peer * 128 KiB more for packets.
struct ExchangeOptions {
  uint64_t slot_bytes = 0;  ///< of a ring's slot, at least 16; default: 128 KiB
  uint32_t slots = 0;       ///< of a ring, at most 256; default: 4
  /// Thread blocks that work on one peer and direction, at most. Default: on GPUs up to 32, above 16 only
  /// where those of all peers in both directions have a multiprocessor each, and no more than the GPU holds
  /// at a time; on the CPU 1.
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

/// One rank's end of the messages of a world. Messages between two ranks are matched in their order, as
/// ncclSend() and ncclRecv() are: the first that one sends is the first that the other receives, whichever of
/// its calls names it, and both name the same size.
///
/// One thread at a time: an exchange() beside another one is refused with a UsageError. The world outlives
/// it, and is not moved meanwhile. Peers write into its memory: it is destroyed when the launches of all
/// ranks have ended (World::barrier()).
class Exchange {
 public:
  /// Collective. On CUDA it takes the GPU that is current.
  /// \throws UsageError for options that cannot be, RunError mismatch if they differ; both on all ranks;
  ///         otherwise as Executor
  explicit Exchange(World& world, const ExchangeOptions& options = {}, const Config& config = Config::load());
  ~Exchange();
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;

  /// Moves all of `sends` and `recvs`, at once: no message waits for one of another peer or direction, so a
  /// rank may send to and receive from everybody, whatever the sizes. Those of one peer and direction go in
  /// the order in which they stand. What is received must not lie in what is sent or received beside it, but
  /// for a message to oneself that stays where it is. A message to oneself is received in the same call.
  ///
  /// Ahead of their receiver there may be two messages of one peer that are short (up to slot_bytes and 16
  /// KiB for each of the blocks), or what the ring holds of a long one; the next waits.
  ///
  /// On the CPU it returns when this rank's messages have ended: what it receives is there, what it sends may
  /// be freed, and errors are thrown. With CUDA it only enqueues on `stream` (a cudaStream_t; null: the
  /// default stream), one kernel for up to 160 messages; graphs may capture and replay it. Errors that come
  /// later are thrown by the next call of any function here. Calls that have a peer and direction in common
  /// are made on one stream, or ordered by the caller; others may be under way beside each other.
  ///
  /// On CUDA a launch whose peer is late waits on the GPU, and CUDA may have other work wait for it: streams
  /// may share a queue, and to load a kernel when it is first used may take an idle GPU
  /// (CUDA_MODULE_LOADING=EAGER loads all at the start). So what the peer needs from this rank before it
  /// comes is enqueued before.
  ///
  /// Two ranks whose sizes differ are an error of all ranks, which names both.
  /// \throws UsageError for a peer that is not there, a null pointer, memory that a GPU cannot read,
  ///         what is received in memory that is used beside it, or messages to oneself that are not received
  ///         alike
  /// \throws RunError aborted if two ranks name different sizes; timed_out if a peer does not come, deadlock
  ///         where that is seen; otherwise as Executor::execute(). After it, World::reset() and reset()
  void exchange(std::span<const SendTo> sends, std::span<const RecvFrom> recvs, void* stream = nullptr);

  /// exchange() of one message.
  void send(const void* data, uint64_t bytes, int peer, void* stream = nullptr);
  void recv(void* data, uint64_t bytes, int peer, void* stream = nullptr);

  /// Throws what an earlier call has failed with; otherwise does nothing. Never blocks.
  void check();

  /// Waits for `stream` and check()s. On the CPU nothing is left to wait for.
  void synchronize(void* stream = nullptr);

  /// Collective, after World::reset(): makes the rings new. What a call that was stopped left there would be
  /// taken for data. Graphs of before stay good.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale
