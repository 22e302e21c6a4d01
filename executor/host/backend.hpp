/// \file
/// What plays tapes: threads of the CPU, or streams of a GPU.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "launches.hpp"
#include "tape.hpp"

namespace chorale::hostrun {

/// What a backend needs to know of a schedule that is bound.
struct Bound {
  World& world;
  std::shared_ptr<const host::Schedule> schedule;  ///< outlives the caller's plan
  std::string plan;                                ///< its name
  Unrolled unrolled;
  HostFunctions functions;                          ///< with the built-in ones
  std::set<std::string, std::less<>> applications;  ///< those of them that are the application's
  /// As the caller gave them. Gone when make_*_lanes() has returned.
  const std::map<std::string, void*, std::less<>>& buffers;
  BlockPlans plans;  ///< those that are launched, by name
  Config config;
  std::chrono::nanoseconds timeout;

  uint32_t rank() const { return uint32_t(world.rank()); }
  /// The caller's memory for a tensor; null if he gave none.
  void* given(const host::ConcreteTensor& tensor) const;
};

/// Refuses a call of ScheduleRun in a function of the schedule, for whose end it would wait.
[[noreturn]] inline void refuse_in_a_function(const char* call) {
  throw UsageError(std::string(call) +
                   "() is called by a function of the schedule, and would wait for that function to end: "
                   "call it when run() has returned");
}

/// Sets a flag for as long as it is there.
class FlagSet {
 public:
  explicit FlagSet(bool& flag) : flag_(flag) { flag_ = true; }
  ~FlagSet() { flag_ = false; }
  FlagSet(const FlagSet&) = delete;
  FlagSet& operator=(const FlagSet&) = delete;

 private:
  bool& flag_;
};

/// A schedule on one rank, ready to run. See ScheduleRun.
class Lanes {
 public:
  virtual ~Lanes() = default;
  virtual void run(void* stream) = 0;
  virtual void synchronize(void* stream) = 0;
  virtual void check() = 0;
  /// The memory of a tensor that functions see here.
  virtual void* buffer(uint32_t tensor) const = 0;
};

/// Collective. \throws UsageError, RunError as ScheduleRun's constructor
std::unique_ptr<Lanes> make_cpu_lanes(Bound bound);
/// \throws UsageError if this library was built without CUDA
std::unique_ptr<Lanes> make_cuda_lanes(Bound bound);

/// The built-in functions on the device that is current when the first of them is called.
/// \param lanes  of the schedule
HostFunctions cuda_functions(uint32_t lanes);
/// What those ask of a call without a misfit(); "" if that is met.
std::string cuda_misfit(const HostCall& call);

}  // namespace chorale::hostrun
