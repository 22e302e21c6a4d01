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

/// One call of a collective on one rank.
struct Arguments {
  /// This rank's input. It may lie in `out`, or `out` in it, as for a collective in place; a plan that is not
  /// in place then copies it first.
  const void* in = nullptr;
  void* out = nullptr;  ///< this rank's output
  /// Bytes of the message: of the input, but of the output for all-gather (as
  /// MSCCL++ and nccl-tests count). Any whole number of elements; for
  /// all-gather, reduce-scatter and all-to-all a multiple of ranks elements. With 0 there is nothing to do,
  /// which the ranks agree on in each call: it waits for the others.
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  std::optional<ReduceOp> op = {};        ///< replaces the plan's reduction operator
  std::optional<PacketForm> packet = {};  ///< default: Config
};

/// One rank's executor. Calls on all ranks of the world must come in the same
/// order with the same plan, bytes, dtype and op; a difference is an error on
/// every rank. One thread at a time: a call beside another one is refused with a UsageError; check() alone
/// may be called from any thread at any time.
///
/// Two launches of one plan (of the same content) with the same bytes, dtype, op and packets must not be
/// under way at once, whatever their buffers: they share counters and scratch, so that both would be wrong.
/// On two streams the second is ordered behind the first (cudaStreamWaitEvent), and so are replays of graphs
/// that hold them; or each stream has an executor of its own, which has counters and scratch of its own.
/// Other calls may run beside them, if the GPU holds the thread blocks of all at once.
///
/// The world outlives it, and is not moved meanwhile. Peers write into its memory: it is destroyed when the
/// launches of all ranks have ended (World::barrier()).
class Executor {
 public:
  explicit Executor(World& world, const Config& config = Config::load());
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  /// Runs `plan` once. On the CPU it returns when this rank's part has ended: `out` is whole, and errors are
  /// thrown. With CUDA it only enqueues on `stream` (a cudaStream_t; null: the default stream); errors that
  /// come later are thrown by the next call of any function here, synchronize() and check() included.
  ///
  /// The first call with these arguments binds: it allocates and exchanges what the run needs; later calls
  /// with the same arguments allocate nothing. A plan is known by Plan::identity and not looked at again:
  /// what is changed in it after its first call has no effect. Buffers may be freed when the launches with
  /// them have ended on all ranks; on the CPU, after a proved plan, when this returns. Made again, at any
  /// address, they are new arguments on all ranks. The next call that binds gives the memory of those that
  /// were freed back on all ranks, and waits for what runs on the GPU as cudaFree() does.
  /// \throws UsageError for a plan that this world does not run, or arguments that the plan does not take: of
  ///   one rank, on all ranks where the call is new
  /// \throws RunError if a wait timed out, a peer died, the world was aborted, or
  ///   ranks disagree; what() names rank, thread block, operation, channel and
  ///   the author's line, and who waits for whom. After it, World::reset().
  void execute(const Plan& plan, const Arguments& arguments, void* stream = nullptr);

  /// Binds without running, so that the next execute() only launches: needed before a CUDA graph captures it.
  ///
  /// Config::bindings calls are kept ready; beyond that the one longest unused is bound anew when it is next
  /// made, once what runs has ended. What a CUDA graph has captured stays until that graph and all that was
  /// instantiated from it are destroyed. A graph of before a World::reset() is not to be replayed: it is
  /// captured anew.
  void prepare(const Plan& plan, const Arguments& arguments);

  /// Throws what an earlier run has failed with; otherwise does nothing. Never blocks. From any thread, also
  /// while another call is under way.
  void check();

  /// Waits for `stream` and check()s. On the CPU nothing is left to wait for.
  void synchronize(void* stream = nullptr);

  /// When each operation of the last Config::trace launches of every plan ran on this rank, launches from
  /// CUDA graphs included: until the next one of its thread block began; in a pipeline, in its last turn.
  /// Waits for the device. Empty without Config::trace. On the CPU all ranks of a host have one clock,
  /// steady_clock.
  std::vector<TraceSpan> trace() const;

  /// Zeroed memory that peers reach without a copy. Freed with the executor. Collective where ranks are
  /// processes; `bytes` may differ by rank.
  void* allocate(uint64_t bytes);

  /// Bytes of scratch on the rank that takes the most: the same number on all ranks. It leaves out copies of
  /// buffers that peers cannot reach, which are as long as these.
  uint64_t scratch() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale
