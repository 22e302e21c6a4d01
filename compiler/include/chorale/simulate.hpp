#pragma once
/// \file
/// The simulator estimates the time of a plan on a machine that you need not have.
///
/// First it executes one launch symbolically, as the proofs do, to find which operations release which. Then
/// each operation gets its cost from the machine's table, and a discrete-event simulation orders them in
/// time. No data is touched. A plan without findings of check() always ends. The same call gives the same
/// result.
///
/// The model has these costs: the issue of an operation; thread synchronisation; the latency of loads,
/// signals, packets, semaphores and barriers; the rates at which a block loads, stores and combines, for each
/// form of packets; the rates of each GPU's link and memory; proxies and copy engines; launches, which may
/// start while the one before runs. Blocks that share a link reserve
/// it in pieces, first come, first served, which is close to fair shares. Switch channels are loads from and
/// stores to each member, as the executor does them by default.
///
/// If the machine has a topology, a transfer reserves every link of its route instead of the links of the two
/// GPUs, and the route's latency is added. docs/topologies.md describes this.
///
/// The model ignores caches, the paths within a switch, and other work on the GPU. It assumes that all blocks
/// fit on the GPU at once and that all ranks begin at the same time. When thread blocks compete for a
/// semaphore or a channel, it simulates one of the possible orders.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "chorale/machine.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/trace_span.hpp"
#include "chorale/types.hpp"

namespace chorale {

/// Describes the call to simulate.
struct SimulatedCall {
  uint64_t bytes = 0;  ///< size of the message, counted as in Arguments: the output for all-gather
  DType dtype = DType::f32;
  std::optional<PacketForm> packet = {};  ///< none: packet_form_by_size()
  bool eager = false;                     ///< true: launches one by one; false: launches in a CUDA graph
  bool spans = false;                     ///< whether Simulation::spans is wanted
};

/// Holds the traffic of one GPU's link and memory in the whole simulation. `out_busy_ns`, `in_busy_ns` and
/// `memory_busy_ns` say how long each of them was in use. With a topology a GPU may have several links, of
/// which the busiest counts.
struct LinkUse {
  uint64_t bytes_out = 0, bytes_in = 0;
  double out_busy_ns = 0, in_busy_ns = 0, memory_busy_ns = 0;
};

/// Holds the result of simulate().
struct Simulation {
  double ns = 0;               ///< time per call, when many calls follow each other
  double launch_ns = 0;        ///< the part of it that passes between launches
  uint64_t ops = 0;            ///< operations executed; each turn of a pipeline counts
  std::vector<LinkUse> links;  ///< by rank
  /// Says how long each link was in use, by Topology::links of the machine's topology.
  std::vector<double> topology_busy_ns;
  /// Holds spans like those of Executor::trace(), on one clock that begins with the launch, which has number
  /// 1. Thread synchronisation counts as part of the operation after it. The span `pipeline` covers all turns
  /// except the last.
  std::vector<TraceSpan> spans;
};

/// Simulates one plan for many sizes and machines. The plan is executed symbolically only once. If it has
/// pipelines, it is executed once per size. For example:
///
///     Simulator simulator(plan);
///     const double ns = simulator.simulate({.bytes = 1 << 20}, load_machine("my_machine.json")).ns;
class Simulator {
 public:
  /// \param plan  a plan without findings of check(). It must outlive the simulator
  explicit Simulator(const Plan& plan);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  /// Simulates one call.
  /// \throws UsageError if the plan does not take the message, as layout_of(), or if the plan cannot be
  ///   executed symbolically: it does not end or has too many operations. Also if the machine's topology has
  ///   too few GPUs for the plan, or does not connect the ends of a channel
  Simulation simulate(const SimulatedCall&, const Machine&);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Simulates one call of a plan.
/// \throws UsageError as Simulator::simulate()
Simulation simulate(const Plan&, const SimulatedCall&, const Machine&);

}  // namespace chorale
