#pragma once
/// \file
/// Simulates the time that a plan would take on a machine that you do not have.
///
/// The code of the proofs plays one launch, which says which operations release which. Then each operation
/// has its cost from the machine's table, and discrete events put them in order of time. No data is touched.
/// A plan in which check() finds nothing always comes to its end. The same call gives the same result.
///
/// The model has the issue of an operation, thread synchronisation, the latency of loads, signals, packets,
/// semaphores and barriers, what a block can load, store and combine, what goes into and out of each GPU over
/// its link and through its memory, proxies and copy engines, and launches. Blocks that share a link reserve
/// it in pieces, first come first served, which is near to fair shares. Switch channels are loads from and
/// stores to each member, as the executor does them by default.
///
/// The model lacks caches, the paths within a switch, other work on the GPU, the number of threads of a
/// block, more blocks than fit on the GPU at once, and ranks that begin at different times. When thread
/// blocks compete for a semaphore or a channel, one order of theirs is simulated.

#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/machine.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/plan.hpp"
#include "chorale/trace_span.hpp"
#include "chorale/types.hpp"

namespace chorale {

/// Says what to simulate.
struct SimulatedCall {
  uint64_t bytes = 0;  ///< size of the message, counted as in Arguments: the output for all-gather
  DType dtype = DType::f32;
  PacketForm packet = PacketForm::ll16;
  bool eager = false;  ///< launches in a row; else in a CUDA graph
  bool spans = false;  ///< whether Simulation::spans is wanted
};

/// Says what one GPU's link and memory did. Busy is the time that a port was reserved.
struct LinkUse {
  uint64_t bytes_out = 0, bytes_in = 0;
  double out_busy_ns = 0, in_busy_ns = 0, memory_busy_ns = 0;
};

struct Simulation {
  double ns = 0;               ///< time of one call of many in a row
  double launch_ns = 0;        ///< the part of it between launches
  uint64_t ops = 0;            ///< operations that were played, each turn of a pipeline for itself
  std::vector<LinkUse> links;  ///< by rank
  /// Holds spans as Executor::trace() gives them, on one clock that begins with the launch, launch 1.
  /// Synchronisation of threads belongs to the operation after it; the span `pipeline` is all turns but the
  /// last.
  std::vector<TraceSpan> spans;
};

/// Simulates a plan again and again, for other sizes and machines. The plan is played once, or once for each
/// size if it has pipelines.
class Simulator {
 public:
  /// \param plan  in which check() finds nothing; it must outlive the simulator
  explicit Simulator(const Plan& plan);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  /// Simulates one call.
  /// \throws UsageError for a message that the plan does not take, as layout_of(), and for a plan that cannot
  ///   be played: one that does not come to its end, or has too many operations
  Simulation simulate(const SimulatedCall&, const Machine&);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Simulates one call of a plan.
Simulation simulate(const Plan&, const SimulatedCall&, const Machine&);

}  // namespace chorale
