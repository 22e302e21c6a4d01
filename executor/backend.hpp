/// \file
/// What runs bound plans: the CPU, or GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/executor.hpp"
#include "chorale/splitmix64.hpp"

namespace chorale {

/// What is the same on all ranks of a call.
struct Call {
  uint64_t plan_hash = 0;
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  int32_t op = -1;  ///< a ReduceOp that replaces the plan's; -1: none
  PacketForm packet = PacketForm::ll8;
  bool multicast = false;      ///< GPUs do switch channels by multicast: Config::switch_channels
  uint32_t bindings = 0;       ///< that are kept, see Bindings: Config::bindings
  uint64_t round_scratch = 0;  ///< Config::round_scratch
  uint64_t scratch = 0;        ///< the limit: Config::scratch

  bool operator==(const Call&) const = default;

  /// Two that differ have one hash by chance alone.
  uint64_t hash() const {
    uint64_t hash = plan_hash;
    for (const uint64_t part : {bytes, uint64_t(dtype), uint64_t(op), uint64_t(packet), uint64_t(multicast),
                                uint64_t(bindings), round_scratch, scratch})
      hash = mix64(hash ^ part);
    return hash;
  }
};

/// A plan bound to a message on one rank.
class Binding {
 public:
  explicit Binding(const Call& call) : call_(call), call_hash_(call.hash()) {}
  virtual ~Binding() = default;

  const Call& call() const { return call_; }
  uint64_t call_hash() const { return call_hash_; }

  /// Whether it also runs from and to these addresses; if not, they need a binding of their own.
  virtual bool serves(const Arguments&) { return true; }

  /// Gets ready what these addresses need, on which run() then works.
  /// \param stream  that run() is to enqueue on; null: there is none yet
  /// \throws UsageError if they overlap as they must not, or cannot be got ready while `stream` is captured
  virtual void prepare(const Arguments&, void* stream) = 0;

  /// Runs once, or enqueues it on `stream`. \throws RunError
  virtual void run(const Plan&, void* stream) = 0;

  /// The next run() goes into the graph that `stream` captures: this must stay as long as the graph.
  virtual void hold(void*) {}

  /// Whether there are such graphs.
  virtual bool held() const { return false; }

  /// Bytes that it takes beside what the caller passes, on the rank that takes the most: the same on all
  /// ranks.
  virtual uint64_t scratch() const { return 0; }

  /// See Executor::trace.
  virtual void add_trace(std::vector<TraceSpan>&) {}

 private:
  Call call_;
  uint64_t call_hash_;
};

class Backend {
 public:
  virtual ~Backend() = default;

  /// Collective; `plan` only during the call.
  /// \throws UsageError on all ranks for a plan that one of them cannot run
  virtual std::unique_ptr<Binding> bind(const Plan& plan, const Call& call, const Arguments& arguments) = 0;

  /// Binding::scratch() of the binding that would be made, as far as it is known before. Not collective.
  /// \throws UsageError for a message that the plan does not take
  virtual uint64_t scratch_of(const Plan&, const Call&) { return 0; }

  /// \throws UsageError if nothing may be bound while `stream` is in the state that it is in
  virtual void require_bindable(void*) {}

  /// Whether a run on `stream` goes into a graph and not to the device.
  virtual bool capturing(void*) { return false; }

  /// Waits until no run of this rank is under way; false if that cannot be waited for now.
  virtual bool drain() { return true; }

  virtual void* allocate(uint64_t bytes) = 0;
  virtual void check() = 0;
  virtual void synchronize(void* stream) = 0;
};

std::unique_ptr<Backend> make_cpu_backend(World& world, const Config& config);

/// \throws UsageError if this library was built without CUDA
std::unique_ptr<Backend> make_cuda_backend(World& world, const Config& config);

}  // namespace chorale
