/// \file
/// A backend plays programs, on threads of the CPU or on streams of a GPU.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "launches.hpp"
#include "rank_program.hpp"

namespace chorale::hostrun {

/// A bound schedule, as a backend needs to know it.
struct Bound {
  World& world;
  std::shared_ptr<const host::Schedule> schedule;  ///< outlives the caller's plan
  std::string plan;                                ///< its name
  Unrolled unrolled;
  HostFunctions functions;                          ///< with the built-in ones
  std::set<std::string, std::less<>> applications;  ///< those of them that are the application's
  /// The buffers as the caller gave them. The reference is valid until make_*_lanes() returns.
  const std::map<std::string, void*, std::less<>>& buffers;
  BlockPlans plans;  ///< those that are launched, by name
  Config config;
  std::chrono::nanoseconds timeout;

  uint32_t rank() const { return uint32_t(world.rank()); }
  /// Returns the caller's memory for a tensor; null if the caller gave none.
  void* given(const host::ConcreteTensor& tensor) const;
};

/// Refuses a call of ScheduleRun that a function of the schedule makes: it would wait for that function.
[[noreturn]] inline void refuse_in_a_function(const char* call) {
  throw UsageError(std::string(call) +
                   "() is called by a function of the schedule, and would wait for that function to end: "
                   "call it when run() has returned");
}

/// Sets a flag for as long as this object lives.
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
  /// Returns the memory of a tensor that functions see here.
  virtual void* buffer(uint32_t tensor) const = 0;
};

/// Makes the lanes of a schedule on the CPU. Collective.
/// \throws UsageError, RunError as ScheduleRun's constructor does
std::unique_ptr<Lanes> make_cpu_lanes(Bound bound);
/// Makes the lanes of a schedule on a GPU. Collective.
/// \throws UsageError if this library was built without CUDA
std::unique_ptr<Lanes> make_cuda_lanes(Bound bound);

/// Returns the built-in functions, on the device that is current when the first of them is called.
/// \param lanes  the number of lanes of the schedule
HostFunctions cuda_functions(uint32_t lanes);
/// Returns why those functions cannot do a call that has no misfit(); "" if they can.
std::string cuda_misfit(const HostCall& call);

}  // namespace chorale::hostrun
