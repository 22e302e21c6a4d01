#pragma once
/// \file
/// Runs host schedules, whose lanes overlap transfers with compute. docs/calls.md says when calls return.

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
#include "chorale/host/schedule.hpp"
#include "chorale/plan.hpp"
#include "chorale/types.hpp"
#include "chorale/world.hpp"

namespace chorale {

/// Describes a part of a tensor in this rank's memory, which on CUDA is the GPU's.
struct TensorView {
  void* data = nullptr;  ///< its first element
  DType dtype = DType::f32;
  std::vector<uint64_t> shape, strides;  ///< strides in elements; the axes that a view selects away are gone

  uint64_t elements() const;
  bool contiguous() const;  ///< row-major, without gaps
  /// Returns the type and shape, such as "f32[4, 16]".
  std::string text() const;
};

/// Holds what a function of a schedule is called with.
struct HostCall {
  std::string_view name;
  std::span<const TensorView> writes, reads;  ///< as the schedule names them
  const std::map<std::string, int64_t>& attributes;
  int rank = 0, ranks = 0;
  uint32_t lane = 0;  ///< calls of one lane come one after the other, those of different lanes at once
  /// CUDA: the cudaStream_t on which the call must enqueue its work. The call must not wait for the stream,
  /// and a graph may record it. Load its kernels before the first run, by a launch or
  /// cudaFuncGetAttributes(): to load one, CUDA may wait for all streams, and a lane of this rank may wait
  /// for a peer. CPU: null; the work is done when the call returns.
  void* stream = nullptr;

  int64_t attribute(std::string_view which, int64_t otherwise) const;
};

/// Computes something for the application. What it throws stops the world.
using HostFunction = std::function<void(const HostCall&)>;
/// Finds functions by name. One with the name of a built-in replaces it in calls, not in fills and
/// collectives.
using HostFunctions = std::map<std::string, HostFunction, std::less<>>;

/// Says what a schedule is bound to. `params` and `mover` are the same on all ranks.
struct ScheduleArguments {
  /// This rank's memory for inputs and outputs, by the tensors' names. Every run uses it, so it must live as
  /// long. Only inputs that the schedule does not write may share memory. Tensors that you leave out are
  /// allocated: see ScheduleRun::buffer(). On CUDA peers must be able to map the memory that they reach
  /// (cudaMalloc).
  std::map<std::string, void*, std::less<>> buffers = {};
  host::Values params = {};      ///< override those of the schedule
  HostFunctions functions = {};  ///< added to the built-in ones
  /// The plans of thread blocks that the schedule launches, by the names that it gives them. Each is for as
  /// many ranks as the world has. They are checked and bound with the schedule.
  std::map<std::string, Plan, std::less<>> plans = {};
  host::Mover mover = host::Mover::ce_put;  ///< for transfers that leave it open
  bool check = true;  ///< check the schedule for this number of ranks and these parameters before it is bound
};

/// Holds a host schedule bound on one rank: its memory, lanes, flags, and a flat list of what to enqueue.
///
/// The built-in functions are matmul (C; A, B), linear (Y; X, W[, bias]) with W of [out, in], add (out; a,
/// b), sum (out; in) over the axis "axis" (0), cast (out; in), copy (out; in), zero (out), fill (out) with
/// "value" (0). On CUDA matmul and linear are those of cuBLAS, for float types only.
///
/// Use it from one thread at a time. The world must outlive it and must not be moved meanwhile. After a
/// RunError call World::reset(), then bind again.
class ScheduleRun {
 public:
  /// Binds; collective. Allocates all temporaries, and exchanges the memory that peers reach.
  /// \throws UsageError on all ranks for a plan without a schedule, parameters, shapes, movers, functions or
  ///   launched plans that do not fit
  /// \throws RunError mismatch if the ranks bind different things; resources
  ScheduleRun(World& world, const Plan& plan, const ScheduleArguments& arguments,
              const Config& config = Config::load());
  ~ScheduleRun();
  ScheduleRun(ScheduleRun&&) noexcept;
  ScheduleRun& operator=(ScheduleRun&&) noexcept;

  /// Runs the schedule once. On the CPU it returns when all lanes of this rank have ended: the outputs are
  /// there, and errors are thrown. With CUDA it only enqueues on `stream` (a cudaStream_t; the schedule's
  /// lane "main"). Work that follows on the stream comes after all lanes. A graph may capture it, and each
  /// replay is a run. The next call of any function here throws errors that come later.
  ///
  /// You may change buffers when the run has ended on this rank, and free them when the last run has ended on
  /// all ranks; on the CPU, if the schedule is checked, when the last run() has returned.
  /// \throws RunError timed_out, aborted, peer_lost ...; it names rank, lane, operation, turn and the
  ///         author's line
  /// \throws UsageError if a function of this schedule calls it, because it would wait for that function's
  ///         end
  void run(void* stream = nullptr);

  /// Waits for what is on `stream`, then calls check(). On the CPU nothing is left to wait for.
  /// \throws RunError, UsageError as run()
  void synchronize(void* stream = nullptr);

  /// Throws the error of an earlier run, if there was one. Never blocks.
  void check();

  /// Returns this rank's memory of a tensor that peers and functions see.
  /// \throws UsageError for an unknown name
  void* buffer(std::string_view tensor) const;
  uint64_t bytes(std::string_view tensor) const;               ///< of the tensor on this rank
  std::vector<uint64_t> shape(std::string_view tensor) const;  ///< on this rank
  std::vector<std::string> lanes() const;                      ///< by HostCall::lane

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale
