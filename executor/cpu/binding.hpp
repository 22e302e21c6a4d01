/// \file
/// A CpuBinding is a plan bound to a message on one rank of a CPU world. It owns the programs, scratch,
/// signals and counters.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "executor/binding/backend.hpp"
#include "executor/lowering/bind.hpp"
#include "executor/lowering/control_block.hpp"
#include "executor/lowering/placement.hpp"
#include "executor/lowering/rounds.hpp"
#include "interpreter.hpp"
#include "launch_trace.hpp"
#include "port.hpp"
#include "run.hpp"

namespace chorale::cpu {

/// Holds what bindings use of the executor.
struct Shared {
  World* world = nullptr;
  const std::vector<Window>* windows = nullptr;  ///< of Executor::allocate, with several processes
  std::function<Proxy&()> proxy;                 ///< makes the proxy if there is none yet
  unsigned trace_launches = 0;                   ///< the number of launches that each binding traces
};

class CpuBinding final : public chorale::Binding {
 public:
  /// Binds a plan. Collective. `plan` is used only during the call.
  /// \param use  scratch_use() of the plan
  /// \throws UsageError on all ranks for a plan that one of them cannot run
  CpuBinding(const Shared& shared, const Plan& plan, const std::vector<ScratchUse>& use, const Call& call);
  ~CpuBinding() override;

  /// Returns the largest number of window bytes that a rank needs. The result is the same on all ranks.
  /// \throws UsageError as layout_of() does
  static uint64_t scratch_of(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call);

  uint64_t scratch() const override { return scratch_; }
  void prepare(const Arguments& arguments, void*) override { place(arguments); }
  void run(const Plan& plan, void* stream) override;
  void add_trace(std::vector<TraceSpan>& spans) override;

 private:
  void make_control(const Plan& plan);
  remote::RemoteEndpoint::Memory memory_for_hosts(const lowering::ControlBlock& mine) const;
  void name_buffers(const std::vector<lowering::ControlBlock>& blocks);
  void make_channels(const std::vector<lowering::ControlBlock>& blocks);
  void make_programs(const std::vector<lowering::ControlBlock>& blocks);
  void place(const Arguments& arguments);
  fibers::LaunchResult launch();
  fibers::LaunchResult launch_round(uint64_t round);
  void publish();
  void body(int block, fibers::BlockHost& host);
  void finish();
  uint64_t shared_word(const char* at, uint64_t bytes) const;
  bool far(uint32_t rank) const;

  /// Holds the program for all rounds of one shape.
  struct RoundProgram {
    lowering::RoundShape shape;
    lowering::DeviceProgram program;
  };

  const Shared& shared_;
  World& world_;
  lowering::BoundPlan bound_;
  Run run_;

  uint32_t rank_;
  std::unique_ptr<lowering::Placement> placement_;
  lowering::StagingMemory user_staging_;

  uint64_t scratch_ = 0;
  std::unique_ptr<Window> window_;
  std::vector<Published*> published_;
  std::vector<uint64_t> expected_, pushed_;
  std::vector<Signal> barriers_, completed_;
  std::vector<Semaphore> semaphores_;
  std::vector<RoundProgram> programs_;
  /// Holds memory that only one block writes, because other blocks may run on other threads.
  struct alignas(128) Line {
    uint64_t words[16] = {};
  };
  std::vector<Line> states_;                  ///< by block: lowering::BlockState and its counts
  std::unique_ptr<char[]> packets_to_hosts_;  ///< packets on their way to other hosts
  std::vector<Line> interpreter_memory_;
  size_t interpreter_lines_ = 0;  ///< of a block
  char* window_staging_ = nullptr;
  std::unique_ptr<char[]> own_staging_;

  lowering::Placed placed_;  ///< the buffers of this run
  bool crosses_hosts_ = false;
  bool staged_ = false;
  bool last_round_ = true;  ///< this round is the last of the message
  uint64_t epoch_ = 0;      ///< the number of runs that have ended
  std::atomic<uint32_t> ended_{0};
  std::atomic<int> blocks_left_{0};
  std::function<void(int, fibers::BlockHost&)> body_;
  const Plan* plan_ = nullptr;  ///< set during a run
  fibers::Describe describe_;
  Proxy* proxy_ = nullptr;
  std::unique_ptr<LaunchTrace> trace_;  ///< null: no trace
};

}  // namespace chorale::cpu
