/// \file
/// A plan bound to a message on one rank of a CPU world: its image, scratch, signals and counters.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "../interpreter/bind.hpp"
#include "machine.hpp"
#include "run.hpp"

namespace chorale::cpu {

/// What is the same on all ranks of a call.
struct Call {
  uint64_t plan_hash = 0;
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  int32_t op = -1;  ///< a ReduceOp that replaces the plan's; -1: none
  PacketForm packet = PacketForm::ll8;

  bool operator==(const Call&) const = default;
};

/// Where a binding that is made takes what belongs to the executor.
struct Shared {
  World* world = nullptr;
  const std::vector<Window>* windows = nullptr;  ///< those of Executor::allocate; several processes only
  std::function<Proxy&()> proxy;                 ///< makes it if there is none yet
};

class Binding {
 public:
  /// Collective; `plan` only during the call.
  /// \throws UsageError on all ranks for a plan that one of them cannot run
  Binding(const Shared& shared, const Plan& plan, const Call& call);
  ~Binding();

  const Call& call() const { return call_; }

  /// Gets ready what these addresses need. \throws UsageError if they overlap as they must not
  void place(const void* in, void* out);

  /// Runs once from and to the places of the last place().
  LaunchResult launch();

 private:
  struct Move {
    void* to = nullptr;
    const void* from = nullptr;
    uint64_t bytes = 0;
  };
  struct Parts;

  void make_control(const Plan& plan);
  void publish();
  void body(int block, BlockHost& host);
  void finish();
  char* staging();
  uint64_t shared_word(const char* at, uint64_t bytes) const;
  void place_for_peers(const void* in, void* out, bool one_storage, char* storage, uint64_t storage_bytes);

  const Shared& shared_;
  World& world_;
  Call call_;
  interpreter::Layout layout_;
  interpreter::BoundImage image_;
  Run run_;

  // What the plan says that place() needs.
  uint32_t rank_;
  bool plan_in_place_ = false;
  bool one_storage_ =
      false;               ///< out of place, a plan in place has input and output in one piece all the same
  bool scatters_ = false;  ///< a plan in place has its output in its input, not the other way round
  bool output_is_complete_ = false;
  bool needs_input_ = true;
  uint64_t in_at_ = 0, out_at_ = 0;  ///< in place: of input and output, in the larger one
  bool in_reached_ = false, out_reached_ = false;
  uint32_t average_over_ = 0;

  std::unique_ptr<Window> window_;
  std::vector<Published*> published_;
  std::vector<Signal*> signals_at_peer_;
  std::vector<uint64_t> expected_, pushed_;
  std::vector<Signal> barriers_, completed_;
  std::vector<Semaphore> semaphores_;
  std::vector<char> rooms_;
  size_t room_bytes_ = 0;
  char* window_staging_ = nullptr;
  std::unique_ptr<char[]> own_staging_;

  char *in_ = nullptr, *out_ = nullptr;  ///< of this run
  Move before_[2], after_;
  bool staged_ = false;
  uint64_t epoch_ = 0;  ///< runs that have ended
  std::atomic<uint32_t> ended_{0};
  std::atomic<int> blocks_left_{0};
  std::function<void(int, BlockHost&)> body_;
  Proxy* proxy_ = nullptr;
};

}  // namespace chorale::cpu
