#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi.hpp"
#include "chorale/config.hpp"
#include "chorale/exchange.hpp"
#include "chorale/executor.hpp"
#include "chorale/tuned_plans.hpp"
#include "chorale/world.hpp"
#include "device.hpp"
#include "functions.hpp"
#include "operators.hpp"
#include "plans.hpp"
#include "turns.hpp"

namespace chorale::nccl {

/// Describes a call that communicates.
struct Task {
  Function function;
  const void* send = nullptr;
  void* recv = nullptr;
  uint64_t count = 0;  ///< as the function counts, in elements
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int root = 0;  ///< the peer of a message
  cudaStream_t stream = nullptr;
  std::optional<Factor> factor = {};  ///< by which each rank multiplies its input

  bool sends_messages() const;
};

/// Reads Chorale's settings. Where nothing sets them, the backend is the GPU, and a wait may last ten
/// minutes, because programs of NCCL expect no shorter limit.
/// \throws as Config::load()
Config config_of_process();
Backend backend_of(const Config& config);

/// Stands for one rank of a communicator. It makes plans of calls and runs them with Chorale's executor.
class Communicator {
 public:
  /// Collective over the ranks of the world.
  Communicator(World world, const Config& config, std::shared_ptr<Device> device);
  ~Communicator();

  int rank() const { return world_.rank(); }
  int ranks() const { return world_.ranks(); }
  Device& device() { return *device_; }
  const Config& config() const { return config_; }
  World& world() { return world_; }
  /// Returns whether other ranks of this communicator live in this process.
  bool shares_process() const { return world_.local() && ranks() > 1; }

  /// Checks what one rank can check alone. If the program created the operator of the task, the task gets its
  /// factor and ncclSum instead, because the program may destroy the operator before the call runs.
  /// \throws CallError
  void check_task(Task& task) const;

  /// Orders the calls that make communicators from this one.
  Turns& turns() { return turns_; }

  /// Returns the operators that the program created for this communicator. Any thread may use them.
  CreatedOperators& operators() { return operators_; }

  /// Returns whether run() only enqueues these tasks, and so does not wait for other ranks on the host.
  bool only_enqueues(std::span<const Task> tasks);

  /// Runs tasks of one group: first the collectives in their order, then all messages at once. On GPUs it
  /// enqueues them. If several threads call it, they run one after the other.
  /// \throws as Executor::execute(); CallError
  void run(std::span<const Task> tasks);

  /// Throws the error of a run that has failed. It does not wait. Any thread may call it.
  void check();

  /// Waits on the host until the work of this rank has ended, and then for all ranks.
  void finish();

  /// Waits as finish() does, but after an abort or an error, when barriers fail. It does not wait for ranks
  /// that have died or left.
  void end_stopped();

  /// Ends the waits of all ranks. Any thread may call it.
  void abort(const std::string& why) { world_.abort(why); }

  /// Records memory that all ranks have registered together, so plans are bound to it.
  void add_window(const void* at, uint64_t bytes);
  void remove_window(const void* at);

 private:
  /// Identifies calls that run the same plan.
  struct Shape {
    std::string_view collective;
    uint64_t bytes;
    DType dtype;
    int root;
    std::string_view program = {};  ///< the name of the plan; "": TunedPlans chooses it
    auto operator<=>(const Shape&) const = default;
  };
  struct Chosen {
    const Plan* plan;
    std::optional<PacketForm> packet;
    bool in_place;      ///< the plan is proved in place
    bool peers_access;  ///< peers access the buffers of some rank
    std::string words;  ///< names the plan, and says why it was chosen
    /// Says whether peers could map the buffers of the first call; nothing before it.
    std::optional<bool> peers_map = {};
    /// Holds Executor::stages(), which is the same for all calls, because none passes memory of
    /// Executor::allocate().
    std::optional<bool> stages = {};
  };
  struct Window {
    const char* at;
    uint64_t bytes;
  };

  /// Holds a call as the executor takes it.
  struct Collective {
    Shape shape;
    Arguments arguments;
    /// Only the root passes all buffers. The others may pass none, or memory that they have not registered,
    /// so all ranks treat the buffers as unregistered.
    bool has_root = false;
  };
  Collective collective_of(const Task& task) const;

  /// Holds the messages of a call.
  struct Messages {
    std::vector<SendTo> sends;
    std::vector<RecvFrom> recvs;
  };

  /// Returns the size for which a plan is chosen. If a message runs piece by piece, this is the size of its
  /// pieces, because each piece begins the plan anew.
  uint64_t tuned_bytes(const Shape& shape);
  /// Chooses a plan of root 0.
  TunedPlans::Choice choose(const Shape& shape, uint64_t bytes) const;
  Chosen& chosen(const Shape& shape);
  const Plan& made(const std::string& program, int root);
  Chosen& remember(const Shape& shape, const Plan& plan, std::optional<PacketForm> packet,
                   const std::string& words);
  bool in_windows(const void* at, uint64_t bytes) const;
  /// Returns whether the plan is bound to the caller's buffers, because all ranks have registered them.
  bool is_direct(const Chosen& choice, const Collective& collective) const;
  /// Returns why a collective does not run as its plan; empty if it does.
  std::string_view why_other_steps(const Collective& collective);
  void execute(const Collective& collective, cudaStream_t stream);
  bool is_bound(const Collective& collective);

  /// Describes a part of a call: a plan, or messages.
  struct CallPart {
    std::optional<Collective> collective;
    Messages messages;
  };
  /// Returns how a collective runs on several ranks: as its plan or, if that plan needs buffers that peers
  /// can access, in ways that do not.
  std::vector<CallPart> steps_of(const Task& task, const Collective& collective);
  void add_chunks(const Task& task, const Collective& collective, std::vector<CallPart>& steps);
  static Collective tail_of(const Collective& collective, uint64_t begin);

  // These write the log, in plan_log.cpp.
  bool in_place(const Task& task, std::string_view collective) const;
  std::string reason_for_other_steps(const Collective& collective, const std::vector<CallPart>& steps);
  void log_plans(const Task& task, const Collective& collective, const std::vector<CallPart>& steps);
  void log_copy(const Collective& collective);

  void run_collective(const Task& task);
  void run_alone(const Task& task);
  void add_messages(const Task& task, Messages& messages) const;
  void leave_in_place(Messages& messages) const;
  void run_messages(Messages messages, cudaStream_t stream);

  /// Holds a part of a reduction whose input is multiplied first. A reduce-scatter has a block of the input
  /// for each rank.
  struct Scaled {
    void* products;     ///< where the products go, block after block without gaps
    const char* in;     ///< the first block of the input
    uint64_t blocks;    ///< the number of blocks
    uint64_t elements;  ///< of each block
    uint64_t distance;  ///< bytes from the beginning of a block of the input to that of the next
    Task sum;           ///< sums the products
  };
  std::vector<Scaled> scaled_parts(const Task& task);
  void* memory_for_products(uint64_t bytes);
  void run_scaled(const Task& task);
  bool enqueues(const Task& task);

  Turns turns_;
  std::mutex mutex_;
  const bool copies_always_;  ///< even where peers can access the caller's buffers
  World world_;
  const Config config_;
  const std::shared_ptr<Device> device_;
  Executor executor_;
  std::unique_ptr<Exchange> exchange_;  ///< null if there is one rank
  TunedPlans plans_;
  PlanLog plan_log_;
  std::set<std::string> logged_copies_;  ///< see log_copy()
  std::map<Shape, Chosen> chosen_;
  std::map<std::pair<std::string, int>, Plan> made_;     ///< by program and root
  std::map<const Plan*, std::optional<Plan>> in_place_;  ///< by plan: see also_in_place()
  std::vector<Window> windows_;
  CreatedOperators operators_;
  // This memory lives as long as the communicator, because CUDA graphs may hold it.
  std::unique_ptr<Memory> part_;                   ///< this rank's part of a chunk, see add_chunks()
  std::vector<std::unique_ptr<Memory>> copies_;    ///< of messages, see run_messages()
  uint64_t copied_ = 0;                            ///< the bytes of the last of them
  std::vector<std::unique_ptr<Memory>> products_;  ///< see scaled_parts()
  uint64_t products_bytes_ = 0;                    ///< the bytes of the last of them
};

}  // namespace chorale::nccl
