#pragma once
/// \file
/// Runs plans. An application needs this header, a World and a plan. docs/calls.md says when calls return.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/config.hpp"
#include "chorale/error.hpp"
#include "chorale/layout.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/trace_span.hpp"
#include "chorale/types.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Describes one call of a collective on one rank.
struct Arguments {
  /// This rank's input. For a collective in place it may lie in `out`, or `out` in it; a plan that is not in
  /// place then copies it first.
  const void* in = nullptr;
  void* out = nullptr;  ///< this rank's output
  /// The size of the message: the bytes of the input, but of the output for all-gather (as MSCCL++ and
  /// nccl-tests count). It is any whole number of elements; for all-gather, reduce-scatter and all-to-all it
  /// is a multiple of `ranks` elements. With 0 there is nothing to do. The ranks agree on that in each call,
  /// so the call waits for the others.
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  std::optional<ReduceOp> op = {};        ///< replaces the plan's reduction operator
  std::optional<PacketForm> packet = {};  ///< default: Config
};

/// Runs plans on one rank. All ranks of the world must make the same calls in the same order, with the same
/// plan, bytes, dtype and op; a difference is an error on every rank. Use it from one thread at a time: a
/// call beside another one throws UsageError. Only check() may be called from any thread at any time.
///
/// Two launches of one plan (of the same content) with the same bytes, dtype, op and packets must not run at
/// once, whatever their buffers. They share counters and scratch, so both results would be wrong. On two
/// streams, order the second after the first (cudaStreamWaitEvent), and also replays of graphs that hold
/// them. Or give each stream an executor of its own, which has counters and scratch of its own. Other calls
/// may run at the same time, if the GPU holds the thread blocks of all at once.
///
/// The world must outlive it and must not be moved meanwhile. Peers write into its memory, so destroy it
/// after the launches of all ranks have ended (World::barrier()).
class Executor {
 public:
  explicit Executor(World& world, const Config& config = Config::load());
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  /// Runs `plan` once. On the CPU it returns when this rank's part has ended: `out` is complete, and errors
  /// are thrown. With CUDA it only enqueues on `stream` (a cudaStream_t; null: the default stream). The next
  /// call of any function here, synchronize() and check() included, throws errors that come later.
  ///
  /// The first call with these arguments binds: it allocates and exchanges what the run needs. Later calls
  /// with the same arguments allocate nothing. A plan is recognised by Plan::identity and not read again, so
  /// changes to it after its first call have no effect. You may free buffers when the launches with them have
  /// ended on all ranks; on the CPU, after a proved plan, when this call returns. Buffers that you allocate
  /// again, at any address, are new arguments on all ranks. The next call that binds releases the memory of
  /// the freed ones on all ranks, and waits for what runs on the GPU as cudaFree() does.
  /// \throws UsageError for a plan that this world cannot run, or arguments that the plan does not take. When
  ///         the call is new, an error of one rank is thrown on all ranks
  /// \throws RunError if a wait timed out, a peer died, the world was aborted, or ranks disagree. what()
  ///         names rank, thread block, operation, channel and the author's line, and who waits for whom.
  ///         After it, call World::reset()
  void execute(const Plan& plan, const Arguments& arguments, void* stream = nullptr);

  /// Binds without running, so that the next execute() only launches. Call it before a CUDA graph captures
  /// execute().
  ///
  /// The executor keeps Config::bindings calls ready. Beyond that, the one unused for longest is bound again
  /// when it is made the next time, after what runs has ended. What a CUDA graph has captured stays until
  /// that graph and all that was instantiated from it are destroyed. Do not replay a graph from before a
  /// World::reset(): capture it again.
  void prepare(const Plan& plan, const Arguments& arguments);

  /// Throws the error of an earlier run, if there was one. Never blocks. You may call it from any thread,
  /// also while another call runs.
  void check();

  /// Waits for `stream`, then calls check(). On the CPU nothing is left to wait for.
  void synchronize(void* stream = nullptr);

  /// Returns when each operation of the last Config::trace launches of every plan ran on this rank. Launches
  /// from CUDA graphs are included. A span lasts until the next operation of its thread block began; in a
  /// pipeline it is that of the last turn. Waits for the device. Returns nothing without Config::trace. On
  /// the CPU all ranks of a host share one clock, steady_clock.
  std::vector<TraceSpan> trace() const;

  /// Allocates zeroed memory that peers reach without a copy. The executor frees it. Collective if ranks are
  /// processes; `bytes` may differ by rank.
  void* allocate(uint64_t bytes);

  /// Returns the bytes of scratch on the rank that takes the most: the same number on all ranks. It leaves
  /// out copies of buffers that peers cannot reach, which are as long as these buffers.
  uint64_t scratch() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale
