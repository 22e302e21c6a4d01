/// \file
/// A backend runs bound plans: on the CPU or on GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/executor.hpp"
#include "chorale/splitmix64.hpp"

namespace chorale {

/// Describes a call by what is the same on all ranks.
struct Call {
  uint64_t plan_hash = 0;
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  int32_t op = -1;  ///< a ReduceOp that replaces the plan's; -1: none
  PacketForm packet = PacketForm::ll8;
  bool multicast = false;      ///< GPUs do switch channels by multicast: Config::switch_channels
  uint32_t bindings = 0;       ///< the number to keep, see Bindings: Config::bindings
  uint64_t round_scratch = 0;  ///< Config::round_scratch
  uint64_t scratch = 0;        ///< the limit: Config::scratch

  bool operator==(const Call&) const = default;

  /// Returns a hash. Two calls that differ share it only by chance.
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

  /// Returns whether this also runs from and to these addresses. If not, they need a binding of their own.
  virtual bool serves(const Arguments&) { return true; }

  /// Makes ready what these addresses need. The next run() works on them.
  /// \param stream  the stream on which run() will enqueue; null: there is none yet
  /// \throws UsageError if they overlap in a way that is not allowed, or cannot be made ready while `stream`
  ///         is captured
  virtual void prepare(const Arguments&, void* stream) = 0;

  /// Runs once, or enqueues the run on `stream`.
  /// \throws RunError
  virtual void run(const Plan&, void* stream) = 0;

  /// Notes that the next run() goes into the graph that `stream` captures. The binding must stay as long as
  /// the graph.
  virtual void hold(void*) {}

  /// Returns whether there are such graphs.
  virtual bool held() const { return false; }

  /// Returns the bytes that this takes beside what the caller passes, on the rank that takes the most. The
  /// number is the same on all ranks.
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

  /// Collective: binds a plan to a message. `plan` is used only during the call.
  /// \throws UsageError on all ranks for a plan that one of them cannot run
  virtual std::unique_ptr<Binding> bind(const Plan& plan, const Call& call, const Arguments& arguments) = 0;

  /// Returns Binding::scratch() of the binding that bind() would make, as far as it is known before. Not
  /// collective.
  /// \throws UsageError for a message that the plan does not take
  virtual uint64_t scratch_of(const Plan&, const Call&) { return 0; }

  /// Checks that bind() may be called in the present state of `stream`.
  /// \throws UsageError if it may not
  virtual void require_bindable(void*) {}

  /// Returns whether a run on `stream` goes into a graph and not to the device.
  virtual bool capturing(void*) { return false; }

  /// Waits until no run of this rank is under way. Returns false if it cannot wait for that now.
  virtual bool drain() { return true; }

  virtual void* allocate(uint64_t bytes) = 0;
  virtual void check() = 0;
  virtual void synchronize(void* stream) = 0;
};

std::unique_ptr<Backend> make_cpu_backend(World& world, const Config& config);

/// \throws UsageError if this library was built without CUDA
std::unique_ptr<Backend> make_cuda_backend(World& world, const Config& config);

}  // namespace chorale
