/// \file
/// Chorale's collectives on tensors: which plan, which executor, and memory that peers reach.
#pragma once

#include <ATen/core/Tensor.h>

#include <chorale/executor.hpp>
#include <chorale/tuned_plans.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace chorale::torch_backend {

struct Options {
  std::string plans;                    ///< the folder with `shipped` and `tuned`
  std::string gpu;                      ///< the name of the GPU that cuda tensors are on; "" without one
  std::chrono::nanoseconds timeout{0};  ///< of every wait, unless Chorale's own settings say otherwise
};

/// One rank of a group of processes on one host. Calls of several threads run one after the other.
class Communicator {
 public:
  /// Collective, as World::join().
  Communicator(const std::string& address, int rank, int ranks, const Options& options);

  /// Collective: `out` is what the collective, by its name in plans, makes of everybody's `in`. Both are
  /// contiguous and of one type and device, and may be the same for an all-reduce. On CUDA it enqueues on
  /// `stream`, a cudaStream_t, which is the current one; on the CPU it returns when it has ended.
  /// \param op  of a collective that reduces
  /// \throws c10::DistBackendError for what fails in the run; c10::Error, UsageError for a wrong call
  void run(const std::string& collective, const at::Tensor& in, const at::Tensor& out,
           std::optional<ReduceOp> op, void* stream);

  /// Throws what a run has failed with. Does not wait.
  void check();
  /// Waits on the host for what runs on `stream`, and then for all ranks.
  void barrier(std::optional<at::Device> device, void* stream);
  /// Waits for all ranks and lets go of what peers reach. What has failed is a warning.
  void close(void* stream);
  /// Ends everybody's waits. From any thread.
  void abort(const std::string& why);

  int rank() const { return world_.rank(); }
  int ranks() const { return world_.ranks(); }

 private:
  /// What tensors of one device need.
  struct Place {
    Executor executor;
    TunedPlans plans;
    /// On GPUs a plan whose peers reach into its buffers is bound to these. A framework's tensors are anew
    /// where they please, on one rank and not on another: such plans go through memory of their own.
    char* stage_in = nullptr;
    char* stage_out = nullptr;
    std::map<const Plan*, bool> reached = {};
  };

  Place& place_for(const at::Device& device);
  bool must_stage(Place& place, const at::Device& device, const Plan& plan, uint64_t bytes, DType dtype);
  void run_staged(Place& place, const Plan& plan, Arguments call, const at::Tensor& in, const at::Tensor& out,
                  void* stream);

  const Options options_;
  std::mutex mutex_;
  World world_;
  std::map<std::string, Place> places_;  ///< by the device's name
};

}  // namespace chorale::torch_backend
