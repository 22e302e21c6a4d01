#pragma once
/// \file
/// synthesize() finds a plan for a collective on a topology. docs/synthesis.md explains how it searches.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/machine.hpp"
#include "chorale/plan.hpp"
#include "chorale/simulate.hpp"
#include "chorale/topology.hpp"

namespace chorale {

/// Returns the collectives for which plans can be found.
std::span<const std::string_view> synthesized_collectives();

/// Says what to look for.
struct SynthesisCall {
  std::string collective;  ///< one of synthesized_collectives()
  uint64_t bytes = 0;      ///< size of the message, as in SimulatedCall
  DType dtype = DType::f32;
  uint32_t root = 0;                 ///< of a broadcast or reduce
  std::vector<uint32_t> group = {};  ///< the GPUs that are ranks, by rank; empty: all GPUs of the topology
  uint64_t seed = 1;                 ///< the same seed and call find the same plan, if the time suffices
  double seconds = 60;               ///< time limit; the best plan so far is returned when it is over
};

/// Holds a plan that is tried beside those that the search makes.
struct OtherPlan {
  std::string name;  ///< in SynthesisTrial
  Plan plan;
};

/// Holds one plan that was tried.
struct SynthesisTrial {
  std::string name;
  double ns = 0;        ///< predicted
  std::string refused;  ///< the reason why the plan cannot run there; empty if it can
};

/// Holds what was found. Times are those of one call in a CUDA graph, as the simulator predicts them.
struct Synthesis {
  Plan plan;  ///< proved, with a certificate
  double ns = 0;
  /// No plan can be faster: the data must cross a cut of the topology, at the rate of the fastest way to move
  /// it. The bound has no latencies.
  double cut_ns = 0;
  std::string cut;  ///< that cut in words
  /// No plan of the searched class can be faster: ranks store chunks down or up trees or along paths, over
  /// the routes of the topology. A plan that lets copy engines move data within a host may be. 0 if the
  /// search for it took too long.
  double class_ns = 0;
  std::vector<SynthesisTrial> trials;  ///< all plans that were tried, the fastest first
  std::string explanation;             ///< several lines: steps, bound, and what limits the plan
};

/// Searches for a plan.
/// \param others    further plans to try, such as the shipped ones; those that do not fit are left out
/// \param progress  is called with the best time so far, 0 before the first, and the share of the time limit
///   that has passed
/// \throws UsageError if the topology, group or call is wrong, or if no plan was found in the time
Synthesis synthesize(const SynthesisCall&, const Machine&, const Topology&,
                     const std::vector<OtherPlan>& others = {},
                     const std::function<void(double best_ns, double share)>& progress = {});

}  // namespace chorale
