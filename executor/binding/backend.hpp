/// \file
/// A backend binds plans and runs them on the CPU or on GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "chorale/arguments.hpp"
#include "chorale/factor.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/scratch.hpp"
#include "chorale/splitmix64.hpp"
#include "chorale/trace_span.hpp"
#include "chorale/types.hpp"

namespace chorale {

struct Config;
class World;

/// Describes a call by the values that must be the same on all ranks.
struct Call {
  uint64_t plan_hash = 0;
  uint64_t bytes = 0;
  DType dtype = DType::f32;
  int32_t op = -1;  ///< a ReduceOp that replaces the plan's; -1: none
  PacketForm packet = PacketForm::ll8;
  bool multicast = false;      ///< GPUs run switch channels by multicast, see Config::switch_channels
  uint32_t bindings = 0;       ///< Config::bindings, the number of bindings to keep
  uint64_t round_scratch = 0;  ///< Config::round_scratch
  uint64_t scratch = 0;        ///< Config::scratch
  bool publishes = false;      ///< ranks publish the addresses of their buffers in every run, so that the
                               ///< binding serves any buffers
  uint64_t part_distance = 0;  ///< bytes from one part of the caller's buffers to the next, a multiple of 16;
                               ///< 0: parts are adjacent. Only calls that publish have one

  bool operator==(const Call&) const = default;

  /// Returns a hash. Different calls have the same hash only by chance.
  uint64_t hash() const {
    uint64_t hash = plan_hash;
    for (const uint64_t part :
         {bytes, uint64_t(dtype), uint64_t(op), uint64_t(packet), uint64_t(multicast), uint64_t(bindings),
          round_scratch, scratch, uint64_t(publishes), part_distance})
      hash = mix64(hash ^ part);
    return hash;
  }
};

/// Holds a plan that is bound to a message on one rank.
class Binding {
 public:
  explicit Binding(const Call& call) : call_(call), call_hash_(call.hash()) {}
  virtual ~Binding() = default;

  const Call& call() const { return call_; }
  uint64_t call_hash() const { return call_hash_; }

  /// Returns whether this binding also works for these addresses. If not, they need another binding.
  virtual bool serves(const Arguments&) { return true; }

  /// Prepares the next run() for these addresses.
  /// \param stream  the stream on which run() will enqueue; null: not known yet
  /// \throws UsageError if the buffers overlap in a way that is not allowed, or if they cannot be prepared
  ///         while `stream` is captured
  virtual void prepare(const Arguments&, void* stream) = 0;

  /// Runs once, or enqueues the run on `stream`.
  /// \throws RunError
  virtual void run(const Plan&, void* stream) = 0;

  /// Records that the next run() goes into the graph that `stream` captures. The binding must live as long as
  /// the graph.
  virtual void hold(void*) {}

  /// Returns whether any such graph still exists.
  virtual bool held() const { return false; }

  /// Returns the bytes of memory that this binding takes in addition to the caller's buffers, on the rank
  /// that takes the most. The number is the same on all ranks.
  virtual uint64_t scratch() const { return 0; }

  /// Returns why the next run() copies a buffer that peers access; "" if it copies none.
  virtual std::string_view why_copied() const { return {}; }

  /// Returns whether the peers of every rank could map its buffers when the plan was bound, see
  /// Executor::peers_map(). The answer is the same on all ranks.
  virtual bool peers_map() const { return true; }

  /// Appends the spans for Executor::trace().
  virtual void add_trace(std::vector<TraceSpan>&) {}

 private:
  Call call_;
  uint64_t call_hash_;
};

class Backend {
 public:
  virtual ~Backend() = default;

  /// Binds a plan to a message; collective. It uses `plan` only during the call.
  /// \param use  scratch_use() of the plan
  /// \throws UsageError, on all ranks, for a plan that one of them cannot run
  virtual std::unique_ptr<Binding> bind(const Plan& plan, const std::vector<ScratchUse>& use,
                                        const Call& call, const Arguments& arguments) = 0;

  /// Returns the Binding::scratch() that bind() would give, as far as it is known before. It is not
  /// collective.
  /// \param use  scratch_use() of the plan
  /// \throws UsageError for a message that the plan does not accept
  virtual uint64_t scratch_of(const Plan&, const std::vector<ScratchUse>& /*use*/, const Call&) { return 0; }

  /// Checks that `stream` is in a state in which you may call bind().
  /// \throws UsageError if it is not
  virtual void require_bindable(void*) {}

  /// Returns whether a graph captures `stream`, so that a run goes into the graph and not to the device.
  virtual bool capturing(void*) { return false; }

  /// Waits until all runs of this rank have ended. Returns false if it cannot wait now.
  virtual bool drain() { return true; }

  virtual void* allocate(uint64_t bytes) = 0;

  /// Returns whether a binding of a plan whose peers access its buffers works only for these buffers.
  virtual bool binds_to_addresses() const { return false; }

  /// Returns whether ranks can publish the buffers of a plan in every run, see Call::publishes. The answer is
  /// the same on all ranks.
  /// \param multicast  as Call::multicast
  virtual bool can_publish(const Plan&, bool /*multicast*/) const { return false; }

  /// Returns whether LL128 packets work between all ranks. The answer is the same on all ranks.
  virtual bool has_whole_lines() const = 0;

  /// Describes rows of bytes at equal distances.
  struct Rows {
    char* at;
    uint64_t distance;  ///< from the begin of a row to the begin of the next one, in bytes
  };
  /// Copies `rows` rows of `bytes` bytes, or enqueues the copy on `stream`.
  /// \throws RunError
  virtual void copy_rows(Rows to, Rows from, uint64_t bytes, uint64_t rows, void* stream) = 0;

  /// Multiplies elements by a factor, or enqueues that on `stream`, see Executor::scale().
  /// \throws RunError
  virtual void scale(void* out, const void* in, uint64_t elements, DType dtype, const Factor& factor,
                     void* stream) = 0;

  virtual void check() = 0;
  virtual void synchronize(void* stream) = 0;
};

std::unique_ptr<Backend> make_cpu_backend(World& world, const Config& config);

/// \throws UsageError if this library was built without CUDA
std::unique_ptr<Backend> make_cuda_backend(World& world, const Config& config);

}  // namespace chorale
