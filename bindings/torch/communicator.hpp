/// \file
/// Runs Chorale's collectives on tensors: chooses the plan and the executor, and owns memory that peers
/// reach.
#pragma once

#include <ATen/core/Tensor.h>

#include <chorale/exchange.hpp>
#include <chorale/executor.hpp>
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

#include "p2p_connection.hpp"

namespace chorale::torch_backend {

struct Options {
  std::string plans;  ///< the folder with `shipped` and `tuned`
  std::string gpu;    ///< the name of the GPU that has the cuda tensors; "" if there is none
  std::chrono::nanoseconds timeout{
      0};  ///< the timeout of every wait, unless Chorale's own settings say otherwise
};

/// Keeps a plan alive while Python, or a communicator that has run it, holds it.
using SharedPlan = std::shared_ptr<const Plan>;

/// Stands for one rank of a group of processes on one host. If several threads make calls, they run one after
/// the other.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  /// Joins the group's world. Collective, as World::join() is.
  Communicator(const std::string& address, int rank, int ranks, const Options& options);

  /// Collective: runs the collective of this name, as plans call it, from every rank's `in` to `out`. Both
  /// are contiguous and have the same type and device. For an all-reduce they may be the same tensor. On CUDA
  /// it enqueues on `stream`, a cudaStream_t, which is the current one; on the CPU it returns when the run
  /// has ended.
  /// \param op  the operator of a collective that reduces
  /// \throws c10::DistBackendError if the run fails; c10::Error, UsageError for a wrong call
  void run(const std::string& collective, const at::Tensor& in, const at::Tensor& out,
           std::optional<ReduceOp> op, void* stream);

  /// Runs this plan as run() does, whatever its collective. If `op` is given, it replaces the plan's
  /// operator.
  void run_plan(const SharedPlan& plan, const at::Tensor& in, const at::Tensor& out,
                std::optional<ReduceOp> op, void* stream);

  /// Collective: copies the root's tensor to all others.
  void broadcast(const at::Tensor& tensor, int root, void* stream);

  /// Makes run() take this plan for its collective from now on, for messages of `least` to `most` bytes. If
  /// several plans fit, run() takes the last one. All ranks must call it at the same point of their sequence
  /// of calls.
  /// \throws c10::Error if the plan is for another number of ranks, or if run() has no such collective
  void use(const SharedPlan& plan, uint64_t least, uint64_t most);

  /// Returns which plan run() takes for elements of a type (u8 if nothing is reduced), and why:
  /// "allreduce_ring_b64, the default: nothing is tuned for it".
  /// An output is assumed to be in the same kind of memory as the input.
  std::string chosen(const std::string& collective, uint64_t bytes, DType dtype, const at::Tensor& input);

  /// Collective: makes a zeroed tensor in memory that peers reach. If all ranks pass such tensors, plans that
  /// need that memory copy nothing. The memory belongs to this communicator. It stays until the communicator
  /// is closed and its last tensor is gone.
  at::Tensor empty(at::IntArrayRef shape, at::ScalarType type, const at::Device& device);

  /// Collective: sends sends[p] to rank p and receives recvs[p] from it. Both lists have a tensor for each
  /// rank, undefined if there is no message. Sizes and types may differ from rank to rank, but both ends of a
  /// message must agree. `device` is the device of all tensors. Streams and errors are as in run().
  void exchange(const std::vector<at::Tensor>& sends, const std::vector<at::Tensor>& recvs,
                const at::Device& device, void* stream);

  /// Sends a contiguous tensor to `peer`, or receives it from there, independently of everything else. On
  /// CUDA it starts after the work that is on the current stream.
  /// \throws as run() does
  std::shared_ptr<Transfer> transfer(const at::Tensor& tensor, int peer, bool sends);

  /// Throws the error of a run that has failed. It does not wait.
  void check();
  /// Throws the error of a message that has failed. It does not wait.
  void check_transfers();
  /// Waits on the host for the work on `stream`, and then for all ranks.
  void barrier(std::optional<at::Device> device, void* stream);
  /// Waits for all ranks and frees the memory that peers reach. An error becomes a warning.
  void close(void* stream);
  /// Ends the waits of all ranks, and the waits of messages whose two ranks have connected. Any thread may
  /// call it.
  void abort(const std::string& why);

  int rank() const { return world_.rank(); }
  int ranks() const { return world_.ranks(); }

 private:
  /// Holds the resources for tensors of one device.
  struct Place {
    std::shared_ptr<Executor> executor;  ///< the tensors in its memory hold it, too
    TunedPlans plans;
    std::unique_ptr<Exchange> exchange = {};                    ///< null until the first exchange
    std::vector<std::pair<const char*, uint64_t>> shared = {};  ///< the memory of empty(), and its bytes

    /// Returns the size of a message, or of the pieces in which the executor runs it. A plan that is fast for
    /// a long message may be slow for its pieces.
    uint64_t bytes_at_once(const Arguments& call, uint64_t in_bytes, uint64_t out_bytes) const;
  };

  /// Holds a plan that use() has told run() to take.
  struct Preferred {
    SharedPlan plan;
    uint64_t least, most;
  };

  /// Identifies a p2p connection from rank `from` to rank `to` for tensors of one kind of device.
  struct LineKey {
    int from, to;
    bool on_gpu;
    auto operator<=>(const LineKey&) const = default;
  };

  Place& place_for(const at::Device& device);
  void check_ranks(const Plan& plan) const;
  const Preferred* preferred(const std::string& collective, uint64_t bytes) const;
  /// Runs a plan that outlives this object. A call in place copies its input only if the plan needs that.
  void execute(Executor& executor, const Plan& plan, Arguments call, void* stream);

  const Options options_;
  std::mutex mutex_;
  World world_;
  const std::string address_;
  std::map<std::string, Place> places_;  ///< by the device's name
  std::vector<Preferred> preferred_;
  std::map<const Plan*, std::optional<Plan>> in_place_;  ///< see also_in_place()
  std::map<const Plan*, SharedPlan> held_;  ///< plans of run_plan(): no other plan gets their addresses
  std::map<int, SharedPlan> broadcasts_;    ///< by root
  std::mutex lines_mutex_;                  ///< not held while a collective waits
  std::map<LineKey, P2pConnection> lines_;
};

}  // namespace chorale::torch_backend
