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

/// A part of a tensor in this rank's memory, which on CUDA is the GPU's.
struct TensorView {
  void* data = nullptr;  ///< its first element
  DType dtype = DType::f32;
  std::vector<uint64_t> shape, strides;  ///< strides in elements; the axes that a view selects away are gone

  uint64_t elements() const;
  bool contiguous() const;  ///< row-major, without gaps
  /// "f32[4, 16]".
  std::string text() const;
};

/// What a function of a schedule is called with.
struct HostCall {
  std::string_view name;
  std::span<const TensorView> writes, reads;  ///< as the schedule names them
  const std::map<std::string, int64_t>& attributes;
  int rank = 0, ranks = 0;
  uint32_t lane = 0;  ///< calls of one lane come one after the other, those of different lanes at once
  /// CUDA: a cudaStream_t, on which the work is to be enqueued; the call must not wait for it, and may be
  /// recorded into a graph. Its kernels have to be loaded before the first run, by a launch or
  /// cudaFuncGetAttributes(): CUDA may wait for all streams to load one, and a lane of this rank may wait for
  /// a peer. CPU: null, and the work is done when the call returns.
  void* stream = nullptr;

  int64_t attribute(std::string_view which, int64_t otherwise) const;
};

/// Compute of the application. What it throws stops the world.
using HostFunction = std::function<void(const HostCall&)>;
/// By name. One with the name of a built-in replaces it in calls, not in fills and collectives.
using HostFunctions = std::map<std::string, HostFunction, std::less<>>;

/// What a schedule is bound to; `params` and `mover` the same on all ranks.
struct ScheduleArguments {
  /// This rank's memory for inputs and outputs, by the tensors' names, which every run uses: it lives as
  /// long. Only inputs that the schedule does not write may share it. What is left out is allocated: see
  /// ScheduleRun::buffer(). On CUDA memory that peers reach has to be such as they can map (cudaMalloc).
  std::map<std::string, void*, std::less<>> buffers = {};
  host::Values params = {};      ///< over those of the schedule
  HostFunctions functions = {};  ///< beside the built-in ones
  /// Of thread blocks, for as many ranks as the world has: those that the schedule launches, by the names
  /// that it gives them. Checked and bound with the schedule.
  std::map<std::string, Plan, std::less<>> plans = {};
  host::Mover mover = host::Mover::ce_put;  ///< of transfers that leave it open
  bool check = true;  ///< the schedule, for this number of ranks and these parameters, before it is bound
};

/// A host schedule bound on one rank: its memory, lanes, flags, and a flat list of what to enqueue.
///
/// Built-in functions: matmul (C; A, B), linear (Y; X, W[, bias]) with W of [out, in], add (out; a, b),
/// sum (out; in) over the axis "axis" (0), cast (out; in), copy (out; in), zero (out), fill (out) with
/// "value" (0). On CUDA matmul and linear are cuBLAS's, of float types only.
///
/// Used by one thread at a time. The world outlives it, and is not moved meanwhile. After a RunError:
/// World::reset(), then bind anew.
class ScheduleRun {
 public:
  /// Collective: binds. Allocates all temporaries, and exchanges the memory that peers reach.
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
  /// lane "main"): work that follows there comes after all lanes. A graph may capture it, and each replay is
  /// a run. Errors that come later are thrown by the next call of any function here.
  ///
  /// Buffers may be changed when the run has ended on this rank, and freed when the last one has on all; on
  /// the CPU, if the schedule is checked, when the last run() has returned.
  /// \throws RunError timed_out, aborted, peer_lost ...: names rank, lane, operation, turn, the author's line
  /// \throws UsageError in a function of this schedule, for whose end it would wait
  void run(void* stream = nullptr);

  /// Waits for what is on `stream` and check()s. On the CPU nothing is left to wait for.
  /// \throws RunError, UsageError as run()
  void synchronize(void* stream = nullptr);

  /// Throws what an earlier run has failed with; otherwise does nothing. Never blocks.
  void check();

  /// This rank's memory of a tensor that peers and functions see. \throws UsageError for an unknown name
  void* buffer(std::string_view tensor) const;
  uint64_t bytes(std::string_view tensor) const;               ///< of it on this rank
  std::vector<uint64_t> shape(std::string_view tensor) const;  ///< on this rank
  std::vector<std::string> lanes() const;                      ///< by HostCall::lane

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale
