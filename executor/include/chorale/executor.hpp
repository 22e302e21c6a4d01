#pragma once
/// \file
/// An Executor runs plans. To run a plan, an application needs this header, a World and the plan.
/// docs/calls.md says when calls return.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/arguments.hpp"
#include "chorale/config.hpp"
#include "chorale/error.hpp"
#include "chorale/factor.hpp"
#include "chorale/layout.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/trace_span.hpp"
#include "chorale/types.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Runs plans on one rank. For example:
///
///     Executor executor(world);
///     const Plan plan = load("allreduce_ring_8.json");  // chorale/json.hpp
///     executor.execute(plan, {.in = in, .out = out, .bytes = bytes}, stream);
///
/// All ranks of the world must make the same calls in the same order, with the same plan, bytes, dtype and
/// op. If calls differ, every rank gets an error. Use it from one thread at a time: a call that runs while
/// another one runs throws UsageError. Only check() may be called from any thread at any time.
///
/// Two launches of one plan (or of plans with the same content) with the same bytes, dtype, op and packets
/// must not run at the same time, whatever their buffers. They share counters and scratch, so both results
/// would be wrong. On two streams, order the second launch after the first (cudaStreamWaitEvent). Order
/// replays of graphs that contain these launches in the same way. Or use a separate executor for each stream,
/// because each executor has separate counters and scratch. Other calls may run at the same time if the GPU
/// holds the thread blocks of all of them at once.
///
/// The world must outlive it; do not move the world while this object exists. Peers write into its memory, so
/// destroy it after the launches of all ranks have ended (World::barrier()).
class Executor {
 public:
  /// Makes an executor for the backend that Config::backend names; collective. On CUDA it works on the
  /// current GPU.
  /// \throws UsageError for an unknown backend, packet form or setting of switch channels, or for a backend
  ///         that this build lacks
  /// \throws RunError if the GPU cannot be used
  explicit Executor(World& world, const Config& config = Config::load());
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  /// Runs `plan` once. On the CPU it returns when this rank's part has ended: `out` is complete, and errors
  /// have been thrown. With CUDA it only enqueues on `stream` (a cudaStream_t; null: the default stream).
  /// Errors that come later are thrown by your next call of any function of this class, including
  /// synchronize() and check().
  ///
  /// The first call with these arguments binds the plan: it allocates the memory that the run needs and
  /// exchanges its addresses with the other ranks. Later calls with the same arguments allocate nothing. A
  /// plan is recognised by Plan::identity and not read again, so changes to it after its first call have no
  /// effect.
  ///
  /// You may free buffers when the launches that use them have ended on all ranks. On the CPU, after a proved
  /// plan, you may free them when this call returns. Buffers that you free and allocate again are new
  /// arguments on all ranks, even at the same address. The next call that binds releases the mappings of the
  /// freed buffers on all ranks. It waits for running work on the GPU, as cudaFree() does.
  /// \throws UsageError for a plan that this world cannot run, or arguments that the plan does not accept.
  ///         When the call has to bind, an error of one rank is thrown on all ranks
  /// \throws RunError if a wait timed out, a peer died, the world was aborted, or ranks disagree. what()
  ///         names rank, thread block, operation, channel and the author's line, and which rank waits for
  ///         which. After it, call World::reset()
  void execute(const Plan& plan, const Arguments& arguments, void* stream = nullptr);

  /// Limits the pieces of execute_staged(), in bytes. A message whose input or output is longer runs in
  /// several pieces. If peers cannot map a rank's memory, the rank copies one piece at a time, so its copy
  /// stays small.
  static constexpr uint64_t most_direct = uint64_t(128) << 20;

  /// Runs `plan` as execute() does, for buffers whose addresses change from call to call. On GPUs execute()
  /// binds a plan to its buffers if peers access them, and every new address needs another binding. With this
  /// call one binding serves all addresses: in the launch, each rank tells the others where its buffers are.
  ///
  /// Where that is impossible the call is *staged*: all ranks copy their inputs into memory of the executor,
  /// run the plan there, at most 64 MiB at a time, and copy the outputs back. A call is staged if the plan
  /// lets peers access its buffers and
  /// - the world has several hosts or more than 16 ranks,
  /// - or multicast runs the plan's switch channels,
  /// - or the plan is in place, and a part of the buffers is no multiple of 16 bytes,
  /// - or a buffer has more than most_direct bytes and cannot be cut into pieces, because it has several
  ///   parts that are no multiples of 16 bytes, or because the collective is not a standard one.
  /// stages() says whether a call is staged.
  ///
  /// The first call with memory of an allocation asks the peers to map it. It waits for their answers, at
  /// most for 0.1 s for each of its two buffers, and the peers need not make a call meanwhile. They unmap the
  /// memory after it was freed, in a later such call, which waits for running work on the GPU, as cudaFree()
  /// does.
  ///
  /// In a call that is not staged, one rank may still copy a buffer that peers access: if they cannot map it,
  /// or if its address is not a multiple of 16. why_copied() has the reason. Peers can map only memory of
  /// cudaMalloc().
  ///
  /// Buffers of allocate() are not copied, and neither are any buffers on the CPU. All ranks must pass memory
  /// of allocate(), or none may. Two calls of execute_staged() of one executor must not run at the same time.
  /// \throws UsageError also if the buffers are too long for one piece and the plan is not of a standard
  ///         collective; otherwise as execute()
  void execute_staged(const Plan& plan, const Arguments& arguments, void* stream = nullptr);

  /// Binds without running, so that the next execute_staged() with these arguments only launches. prepare()
  /// says what that means for CUDA graphs.
  void prepare_staged(const Plan& plan, const Arguments& arguments);

  /// Returns whether this call of execute_staged() is staged, so that all ranks copy its buffers.
  bool stages(const Plan& plan, const Arguments& arguments);

  /// Returns why the last execute_staged() copied a buffer that peers access, such as "it is host memory"; ""
  /// if peers accessed all such buffers. It does not report the copy of an input for a call in place.
  std::string why_copied() const;

  /// Returns false if some rank passed memory that peers cannot map when this call of execute_staged() was
  /// bound, for example host memory. Every call with such memory copies it, so that sending messages may be
  /// faster than this plan. It returns true by default: if the call is staged, is not bound, or needs no
  /// access by peers. The answer is the same on all ranks. Ask after execute_staged() has returned.
  bool peers_map(const Plan& plan, const Arguments& arguments);

  /// Return whether execute() or execute_staged() would not bind, because the plan is already bound to these
  /// arguments. Such a call needs no call of other ranks on the host. execute_staged() may still wait until
  /// peers have mapped new memory, and for the GPU to unmap freed memory.
  bool is_bound(const Plan& plan, const Arguments& arguments);
  bool is_bound_staged(const Plan& plan, const Arguments& arguments);

  /// Returns the form of packets of a call that names none in Arguments::packet. It is Config::packet, or
  /// with `auto` packet_form_by_size(), but ll16 if lines do not work between all ranks: between hosts,
  /// between GPUs without NVLink, and with switch_channels = multicast. The answer is the same on all ranks.
  PacketForm packet_form(const Plan& plan, uint64_t bytes) const;

  /// Binds without running, so that the next execute() only launches. Call it before a CUDA graph captures
  /// execute().
  ///
  /// The executor keeps Config::bindings calls bound. When there are more, it drops the call that was unused
  /// for longest, after running work has ended, and binds it again when you next make it. A binding that a
  /// CUDA graph has captured stays until that graph and all instances of it are destroyed. After a
  /// World::reset(), do not replay graphs captured before it: capture them again.
  void prepare(const Plan& plan, const Arguments& arguments);

  /// Sets out[k] = in[k] * factor for each of `elements` elements. Each product is rounded to `dtype`, and
  /// integers wrap. On the CPU it returns when all products are written. With CUDA it only enqueues on
  /// `stream`, which a graph may capture. It is not collective. The elements and the factor need no
  /// alignment.
  ///
  /// \param out  has room for `elements` elements. It is `in`, or does not overlap it
  /// \throws RunError if CUDA refuses the launch
  void scale(void* out, const void* in, uint64_t elements, DType dtype, const Factor& factor,
             void* stream = nullptr);

  /// Throws the error of an earlier run, if there was one. Never blocks. You may call it from any thread,
  /// also while another call runs.
  void check();

  /// Waits for `stream`, then calls check(). On the CPU nothing is left to wait for.
  void synchronize(void* stream = nullptr);

  /// Returns the time spans of the operations on this rank, for the last Config::trace launches of every
  /// plan. Launches from CUDA graphs are included. A span lasts until the next operation of its thread block
  /// begins. For an operation in a pipeline, the span is that of the last turn. It waits for the device. It
  /// returns nothing if Config::trace is 0. On the CPU all ranks of a host share one clock, steady_clock.
  std::vector<TraceSpan> trace() const;

  /// Allocates zeroed memory that peers can access directly. Buffers in it need no copy. The executor frees
  /// it when it is destroyed. The call is collective if ranks are processes; `bytes` may differ by rank.
  /// \throws RunError resources if memory runs out
  void* allocate(uint64_t bytes);

  /// Returns the bytes of scratch on the rank that uses the most; the number is the same on all ranks. It
  /// does not count copies of buffers that peers cannot access. Such a copy is as long as its buffer.
  uint64_t scratch() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale
