/// \file
/// Describes an application's rank: its plans, an executor, data that change from run to run, and the errors
/// that its calls throw.
#pragma once

#include <chorale/executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "device.hpp"
#include "team.hpp"

namespace chorale::test {

/// Returns a shipped algorithm for this number of ranks, made from its source. Any thread may call it.
const Plan& built(std::string_view algorithm, int ranks);

/// All-reduces that wait for signals, for packets, and for both.
inline const Plan& by_signals(const Rank& of) { return built("allreduce_all_pairs", of.ranks()); }
inline const Plan& by_packets(const Rank& of) { return built("allreduce_one_shot", of.ranks()); }
inline const Plan& in_two_steps(const Rank& of) { return built("allreduce_two_shot", of.ranks()); }

/// Returns a plan in which each of two ranks waits on a channel before it signals: line 11 of mine.cpp, then
/// line 12.
Plan both_wait_first(ChannelType type);

/// Describes the error that a call throws.
struct Failure {
  RunError::Reason reason = RunError::Reason::other;
  bool usage = false;  ///< a UsageError
  std::string text;
  double after_s = 0;  ///< seconds from the call, if a Caller made it
};
Failure failure_of(const std::function<void()>& call);

/// Holds buffers on a separate stream, and the data of several runs of an all-reduce. The data are small
/// whole numbers, so that sums are exact in any order.
class Data {
 public:
  static constexpr uint64_t elements = 1000, bytes = elements * sizeof(float);

  explicit Data(const Rank& of, int rows = 1);

  void* stream() const { return stream_.get(); }
  Arguments arguments() const { return {.in = in_.get(), .out = out_.get(), .bytes = bytes}; }
  void use(std::shared_ptr<void> in, std::shared_ptr<void> out);

  /// Loads the inputs of runs `first`, `first` + 1 ..., one per row.
  void load(int first);
  /// Enqueue the copies before and after a run, so that the host does not have to wait for them.
  void before(int row);
  void after(int row);
  /// Waits, and throws if an output is not the sum of the inputs.
  void compare();

 private:
  char* row(const std::shared_ptr<void>& of, int row) const;

  int rank_, ranks_, rows_, first_ = 0;
  std::shared_ptr<void> stream_, in_, out_, fed_, kept_;
};

/// Holds an executor with one set of data.
struct Caller {
  Executor executor;
  Data data;

  explicit Caller(Rank& of) : Caller(of, of.world) {}
  Caller(Rank& of, World& world) : executor(world, of.config), data(of) {}

  void run(const Plan& plan, Arguments arguments) {
    executor.execute(plan, arguments, data.stream());
    executor.synchronize(data.stream());
  }
  void run(const Plan& plan) { run(plan, data.arguments()); }

  /// Runs with the data of `run` and compares.
  void run_well(const Plan& plan, int run);

  /// Returns the error of a run, which must throw.
  Failure failure(const Plan& plan, Arguments arguments);
  Failure failure(const Plan& plan) { return failure(plan, data.arguments()); }

  /// Waits, on a rank that is not in the collective, until the world has stopped. Returns the error that
  /// check() throws then.
  Failure hear_of_stop(Rank& me);
};

}  // namespace chorale::test
