#pragma once
/// \file
/// A ScheduleRun runs a host schedule, whose streams overlap transfers with compute. docs/calls.md says when
/// calls return.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/config.hpp"
#include "chorale/error.hpp"
#include "chorale/plan.hpp"
#include "chorale/schedule/schedule.hpp"
#include "chorale/types.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Describes a part of a tensor in this rank's memory, which on CUDA is the GPU's.
struct TensorView {
  void* data = nullptr;  ///< the address of the first element
  DType dtype = DType::f32;
  std::vector<uint64_t> shape, strides;  ///< strides are in elements; axes with a selected index are left out

  uint64_t elements() const;
  bool contiguous() const;  ///< row-major, without gaps
  /// Returns the type and shape, such as "f32[4, 16]".
  std::string text() const;
};

/// Holds the arguments with which a schedule calls a function.
struct HostCall {
  std::string_view name;
  std::span<const TensorView> writes, reads;  ///< the views of the call, in the order of the schedule
  const std::map<std::string, int64_t>& attributes;
  int rank = 0, ranks = 0;
  uint32_t stream_index = 0;  ///< the number of the schedule's stream; calls of different streams may run at
                              ///< the same time
  [[deprecated("use stream_index")]] uint32_t lane = stream_index;  ///< the old name, for one version
  /// CUDA: the cudaStream_t on which the call must enqueue its work. The call must not wait for the stream,
  /// and a graph may record it. Load its kernels before the first run, by a launch or
  /// cudaFuncGetAttributes(). To load a kernel, CUDA may wait for all streams, and a stream of this rank may
  /// be waiting for a peer. CPU: null; the work is done when the call returns.
  void* stream = nullptr;

  /// Returns an attribute of the call, or `otherwise` if the call has no such attribute.
  int64_t attribute(std::string_view which, int64_t otherwise) const;
};

/// Is the type of the application's functions in a schedule. An exception that one throws stops the world.
using HostFunction = std::function<void(const HostCall&)>;
/// Maps names to functions. A function with the name of a built-in function replaces it in calls, but not in
/// copies, fills and collectives.
using HostFunctions = std::map<std::string, HostFunction, std::less<>>;

/// Holds what you bind a schedule to. All ranks must pass the same `params` and `mover`.
struct ScheduleArguments {
  /// Maps the names of inputs and outputs to this rank's memory for them. Every run uses this memory, so keep
  /// it as long as the ScheduleRun. Only inputs that the schedule does not write may share memory. Tensors
  /// that you leave out are allocated, see ScheduleRun::buffer(). On CUDA, memory that peers access must be
  /// memory that they can map (cudaMalloc).
  std::map<std::string, void*, std::less<>> buffers = {};
  schedule::Values params = {};  ///< values of parameters, by name; others keep their default
  HostFunctions functions = {};  ///< added to the built-in ones
  /// Maps the names that the schedule launches to plans for the world's number of ranks. The plans are
  /// checked and bound with the schedule.
  std::map<std::string, Plan, std::less<>> plans = {};
  /// The mover of transfers that do not choose one. `automatic` is ce_put.
  schedule::Mover mover = schedule::Mover::ce_put;
  bool check = true;  ///< check the schedule for this number of ranks and these parameters before it is bound
};

/// Holds a host schedule that is bound on one rank: its memory, streams and flags, and a flat list of the
/// operations to enqueue. For example:
///
///     const Plan plan = load("ag_matmul_p2p.json");  // chorale/json.hpp
///     ScheduleRun schedule(world, plan, {.buffers = {{"A", a}, {"B", b}, {"C", c}}, .params = {{"M", m}}});
///     schedule.run(stream);
///
/// The built-in functions are these. Views before the semicolon are written, and views after it are read.
///   matmul (C; A, B)           linear (Y; X, W[, bias])   with W of [out, in]
///   add (out; a, b)            sum (out; in)              over the attribute "axis", by default 0
///   cast (out; in)             copy (out; in)
///   zero (out)                 fill (out)                 with the attribute "value", by default 0
/// On CUDA matmul and linear call cuBLAS, and take only float types.
///
/// Use it from one thread at a time. The world must outlive it; do not move the world while this object
/// exists. After a RunError, call World::reset() and then bind again.
class ScheduleRun {
 public:
  /// Binds the schedule; collective. It allocates all temporaries, and exchanges the memory that peers
  /// access.
  /// \throws UsageError, on all ranks, for a plan without a schedule, or for parameters, shapes, movers,
  ///   functions or launched plans that do not fit
  /// \throws RunError mismatch if the ranks bind different things; resources
  ScheduleRun(World& world, const Plan& plan, const ScheduleArguments& arguments,
              const Config& config = Config::load());
  ~ScheduleRun();
  ScheduleRun(ScheduleRun&&) noexcept;
  ScheduleRun& operator=(ScheduleRun&&) noexcept;

  /// Runs the schedule once. On the CPU it returns when all streams of the schedule have ended on this rank:
  /// the outputs are there, and errors have been thrown. With CUDA it only enqueues, and `stream` (a
  /// cudaStream_t) serves as the schedule's stream "main". Work that you enqueue on `stream` later runs after
  /// all streams of the schedule. A graph may capture the run, and each replay is a run. Errors that come
  /// later are thrown by your next call of any function of this class.
  ///
  /// You may change buffers when the run has ended on this rank, and free them when the last run has ended on
  /// all ranks. On the CPU, if the schedule is checked, you may free them when the last run() has returned.
  /// \throws RunError timed_out, aborted, peer_lost ...; it names rank, stream, operation, turn and the
  ///         author's line
  /// \throws UsageError if a function of this schedule calls run(), because run() would wait for that
  ///         function to end
  void run(void* stream = nullptr);

  /// Waits for `stream`, then calls check(). On the CPU nothing is left to wait for.
  /// \throws RunError, UsageError as run()
  void synchronize(void* stream = nullptr);

  /// Throws the error of an earlier run, if there was one. Never blocks.
  void check();

  /// Return this rank's memory for a tensor, and the tensor's bytes and shape there. On CUDA it is memory of
  /// the GPU.
  /// \throws UsageError for an unknown name
  void* buffer(std::string_view tensor) const;
  uint64_t bytes(std::string_view tensor) const;
  std::vector<uint64_t> shape(std::string_view tensor) const;
  /// Returns the names of the schedule's streams, by HostCall::stream_index.
  std::vector<std::string> streams() const;
  [[deprecated("use streams()")]] std::vector<std::string> lanes() const { return streams(); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale
