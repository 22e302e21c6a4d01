/// \file
/// A backend runs the programs of host schedules, on CPU threads or on CUDA streams. A program is a rank's
/// list of operations, see rank_program.hpp.
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

namespace chorale::schedule_run {

/// Holds a bound schedule in the form that a backend needs.
struct Bound {
  World& world;
  std::shared_ptr<const schedule::Schedule> schedule;  ///< outlives the caller's plan
  std::string plan;                                    ///< the plan's name
  Unrolled unrolled;
  HostFunctions functions;                          ///< includes the built-in ones
  std::set<std::string, std::less<>> applications;  ///< the names of the application's functions among them
  /// Refers to the buffers that the caller gave. The reference is valid until make_*_streams() returns.
  const std::map<std::string, void*, std::less<>>& buffers;
  BlockPlans plans;  ///< the plans that are launched, by name
  Config config;
  std::chrono::nanoseconds timeout;

  uint32_t rank() const { return uint32_t(world.rank()); }
  /// Returns the caller's memory for a tensor; null if the caller gave none.
  void* given(const schedule::ConcreteTensor& tensor) const;
};

/// Refuses a call of ScheduleRun from a function of the schedule, because it would wait for that function.
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

/// Holds a schedule on one rank, ready to run. See ScheduleRun.
class Streams {
 public:
  virtual ~Streams() = default;
  virtual void run(void* stream) = 0;
  virtual void synchronize(void* stream) = 0;
  virtual void check() = 0;
  /// Returns a tensor's memory as functions see it on this rank.
  virtual void* buffer(uint32_t tensor) const = 0;
};

/// Makes the streams of a schedule on the CPU. Collective.
/// \throws UsageError, RunError as ScheduleRun's constructor does
std::unique_ptr<Streams> make_cpu_streams(Bound bound);
/// Makes the streams of a schedule on a GPU. Collective.
/// \throws UsageError if this library was built without CUDA
std::unique_ptr<Streams> make_cuda_streams(Bound bound);

/// Returns the built-in functions, on the device that is current when the first of them is called.
/// \param streams the number of streams of the schedule
HostFunctions cuda_functions(uint32_t streams);
/// Returns why those functions cannot do a call that has no misfit(); "" if they can.
std::string cuda_misfit(const HostCall& call);

}  // namespace chorale::schedule_run
