/// \file
/// Chorale's collectives on tensors: which plan, which executor, and memory that peers reach.
#pragma once

#include <ATen/core/Tensor.h>

#include <chorale/exchange.hpp>
#include <chorale/executor.hpp>
#include <chorale/needs.hpp>
#include <chorale/tuned_plans.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "line.hpp"

namespace chorale::torch_backend {

struct Options {
  std::string plans;                    ///< the folder with `shipped` and `tuned`
  std::string gpu;                      ///< the name of the GPU that cuda tensors are on; "" without one
  std::chrono::nanoseconds timeout{0};  ///< of every wait, unless Chorale's own settings say otherwise
};

/// Stays while Python, or a communicator that has run it, has it.
using SharedPlan = std::shared_ptr<const Plan>;

/// One rank of a group of processes on one host. Calls of several threads run one after the other.
class Communicator : public std::enable_shared_from_this<Communicator> {
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

  /// The same by this plan, whatever its collective. What it reduces it reduces by `op`, if there is one.
  void run_plan(const SharedPlan& plan, const at::Tensor& in, const at::Tensor& out,
                std::optional<ReduceOp> op, void* stream);

  /// Collective: what `root` has is in all tensors then.
  void broadcast(const at::Tensor& tensor, int root, void* stream);

  /// From now on run() takes this plan for its collective, for messages of `least` to `most` bytes; of
  /// several the last. All ranks say so, between the same calls. \throws c10::Error for a plan of other
  /// ranks, or of no collective that run() is called for
  void use(const SharedPlan& plan, uint64_t least, uint64_t most);

  /// Which plan run() takes for elements of a type, u8 where nothing is reduced, and why:
  /// "allreduce_ring_b64, the default: nothing is tuned for it".
  std::string chosen(const std::string& collective, uint64_t bytes, DType dtype, const at::Device& device);

  /// Collective: zeroed elements in memory that peers reach, for plans that need that: nothing is copied
  /// then, where all ranks give such tensors. The memory is this communicator's, and stays until it is closed
  /// and no tensor is left.
  at::Tensor empty(at::IntArrayRef shape, at::ScalarType type, const at::Device& device);

  /// Collective: sends[p] goes to rank p, and what rank p sends comes to recvs[p]; either list has a tensor
  /// for each rank, undefined where there is none. Sizes and types may differ from rank to rank, but not
  /// between the ends of a message. `device` is that of all tensors. Streams and errors as run().
  void exchange(const std::vector<at::Tensor>& sends, const std::vector<at::Tensor>& recvs,
                const at::Device& device, void* stream);

  /// Sends a contiguous tensor to `peer`, or receives it from there, beside everything else. On CUDA it is
  /// behind what is on the current stream. \throws as run()
  std::shared_ptr<Transfer> transfer(const at::Tensor& tensor, int peer, bool sends);

  /// Throws what a run has failed with. Does not wait.
  void check();
  /// The same of what was sent or received.
  void check_transfers();
  /// Waits on the host for what runs on `stream`, and then for all ranks.
  void barrier(std::optional<at::Device> device, void* stream);
  /// Waits for all ranks and lets go of what peers reach. What has failed is a warning.
  void close(void* stream);
  /// Ends everybody's waits, those for messages where the two ranks have met. From any thread.
  void abort(const std::string& why);

  int rank() const { return world_.rank(); }
  int ranks() const { return world_.ranks(); }

 private:
  /// What tensors of one device need.
  struct Place {
    std::shared_ptr<Executor> executor;  ///< and of the tensors in its memory
    TunedPlans plans;
    std::unique_ptr<Exchange> exchange = {};  ///< once there was one
    /// On GPUs a plan whose peers reach into its buffers is bound to these. A framework's tensors are anew
    /// where they please, on one rank and not on another: such plans go through memory of their own.
    char* stage_in = nullptr;
    char* stage_out = nullptr;
    std::map<const Plan*, RankNeeds> reached = {};
    std::vector<std::pair<const char*, uint64_t>> allocated = {};  ///< by empty()
  };

  /// What run() is told to take.
  struct Preferred {
    SharedPlan plan;
    uint64_t least, most;
  };

  /// From rank `from` to rank `to`, of tensors of a kind of device.
  struct LineKey {
    int from, to;
    bool on_gpu;
    auto operator<=>(const LineKey&) const = default;
  };

  Place& place_for(const at::Device& device);
  void check_ranks(const Plan& plan) const;
  const Preferred* preferred(const std::string& collective, uint64_t bytes) const;
  void execute(Place& place, const Plan& plan, const Arguments& call, const at::Tensor& in,
               const at::Tensor& out, void* stream);
  bool must_stage(Place& place, const Plan& plan, const Arguments& call, const at::Tensor& in,
                  const at::Tensor& out);
  void run_staged(Place& place, const Plan& plan, Arguments call, const at::Tensor& in, const at::Tensor& out,
                  void* stream);

  const Options options_;
  std::mutex mutex_;
  World world_;
  const std::string address_;
  std::map<std::string, Place> places_;  ///< by the device's name
  std::vector<Preferred> preferred_;
  std::map<const Plan*, SharedPlan> held_;  ///< that run_plan() has run: no other plan gets their addresses
  std::map<int, SharedPlan> broadcasts_;    ///< by root
  std::mutex lines_mutex_;                  ///< not held while a collective waits
  std::map<LineKey, Line> lines_;
};

}  // namespace chorale::torch_backend
