/// \file
/// The threaded and the seeded scheduler share this code.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/system/deadline.hpp"
#include "fiber.hpp"
#include "scheduler.hpp"

namespace chorale::fibers {

using Clock = std::chrono::steady_clock;
using Body = std::function<void(int block, BlockHost& host)>;
using Ready = bool (*)(const void*);

struct Launch;

class SchedulerImpl : public Scheduler {
 public:
  explicit SchedulerImpl(Options options) : options_(std::move(options)) {}

  LaunchResult launch(int rank, int blocks, const Body& body, const Describe& describe) final;
  void check_caller() const override {}
  void run_seeded(std::vector<std::function<void()>> bodies) override;
  bool wait(Ready ready, const void* state, bool obey_stop) override;

  void busy(int change) final { busy_.fetch_add(change, std::memory_order_acq_rel); }
  void moved() final { moves_outside_.fetch_add(1, std::memory_order_acq_rel); }
  bool seeded() const final { return options_.seed.has_value(); }
  const Scheduler::Options& options() const { return options_; }

  Stop stopped() const { return Stop(load_acquire(&options_.abort->stop)); }

 protected:
  /// Does what launch() does, for a number of blocks that is not negative.
  virtual LaunchResult run_blocks(int rank, int blocks, const Body& body, const Describe& describe) = 0;

  // The time-out limits a wait. Its clock restarts whenever the launch makes progress: a block ends a wait,
  // an operation or its body, or data moves outside the blocks. A block that only computes is never late.

  void start_clock(Launch& launch) const;

  /// Makes the first of two checks: restarts the clock if the launch has moved. Returns true if its time is
  /// over; then each of its blocks must look() before late() is called.
  bool overdue(Launch& launch) const;

  /// Makes the second check: returns true if the launch must end. A launch with a block that can run is
  /// spared once, because data that came in time counts.
  bool late(Launch& launch) const;

  /// Both stop the world and report the unfinished blocks.
  void time_out(int rank, std::vector<Stuck> seen);
  void deadlock(int rank, const std::string& why, std::vector<Stuck> seen);

  /// Stops the world because a launch lacks a resource: its peers wait for blocks that will never run.
  void cannot_launch(int rank, int blocks, const std::exception& error);

  Scheduler::Options options_;
  std::atomic<int> busy_{0};

 private:
  bool stands(const Launch& launch) const;

  std::atomic<uint64_t> moves_outside_{0};

  std::string lines_of(const std::vector<Stuck>& seen) const;
};

/// Holds one call of launch(), on the caller's stack.
struct Launch {
  int rank = 0;
  const Body* body = nullptr;
  const Describe* describe = nullptr;
  Launch* outer = nullptr;        ///< the launch whose block made this launch
  std::atomic<int> remaining{0};  ///< the number of blocks that have not ended

  std::atomic<bool> moved{false};  ///< set on progress; cleared by the scheduler's check
  std::atomic<bool> asked{false};  ///< a block has checked for a stop since the clock started, as waits do
  Clock::time_point deadline;      ///< only the scheduler uses this member and the next ones
  uint64_t moves_outside = 0;      ///< the count when the clock started
  bool spared = false;             ///< it has been spared since its last progress
  bool can_run = false, waits = false;  ///< look() has found a block that can run, or one that waits

  std::once_flag failed;
  std::exception_ptr error;  ///< the first exception of a body
};

/// Adds to a fiber the condition for which it is parked.
class Task : public Fiber {
 public:
  using Fiber::Fiber;

  Ready ready = nullptr;  ///< null: the fiber can run
  const void* state = nullptr;
  bool obey_stop = true;  ///< a stop ends its wait

  bool runnable(bool stopping) const { return !ready || (stopping && obey_stop) || ready(state); }

 protected:
  void park_until(Ready until, const void* of) {
    ready = until;
    state = of;
    suspend();
    ready = nullptr;
  }
};

/// Runs a thread block as a fiber; later blocks reuse it. It shares no line with other tasks, because these
/// may run on other threads.
class alignas(128) BlockTask : public Task, public BlockHost {
 public:
  explicit BlockTask(SchedulerImpl& scheduler);

  void begin(Launch& launch, int block);
  Launch& launch() const { return *launch_; }
  Stuck report() const;

  bool reported = false;  ///< for the scheduler's use

  /// Records in the launch whether the block can run or waits.
  void look() const;

  void park(Ready until, const void* of) override;
  void park_at_barrier(Ready until, const void* of) override { park_until(until, of); }
  void moved() override;
  void sync() override {}  // a block is one fiber
  void step() override { moved(); }
  Stop stopped() override;

 protected:
  void run() override;

  SchedulerImpl& scheduler_;
  Launch* launch_ = nullptr;
  int block_ = 0;
};

/// Keeps block fibers that have ended for reuse, because making a stack costs more than a small launch. The
/// owner guards it against concurrent use.
template <class T>
class TaskPool {
 public:
  /// Makes fibers until `count` can be taken. If one cannot be made, destroys those that it has made.
  template <class... Arguments>
  void reserve(size_t count, Arguments&&... arguments) {
    const size_t before = free_.size();
    if (before >= count) return;
    free_.reserve(all_ + count - before);  // makes room for all fibers, so that give() never allocates
    try {
      while (free_.size() < count) free_.push_back(std::make_unique<T>(arguments...));
    } catch (...) {
      free_.resize(before);
      throw;
    }
    all_ += count - before;
  }

  /// Takes a reserved fiber.
  std::unique_ptr<T> take() {
    std::unique_ptr<T> task = std::move(free_.back());
    free_.pop_back();
    return task;
  }
  void give(std::unique_ptr<T> task) { free_.push_back(std::move(task)); }

 private:
  std::vector<std::unique_ptr<T>> free_;
  size_t all_ = 0;  ///< the number of free and taken fibers
};

inline void sort_by_rank(std::vector<Stuck>& stuck) {
  std::sort(stuck.begin(), stuck.end(), [](const Stuck& left, const Stuck& right) {
    return left.rank != right.rank ? left.rank < right.rank : left.block < right.block;
  });
}

std::unique_ptr<Scheduler> make_threaded(Scheduler::Options options);
/// \param fibers_of a seeded scheduler whose thread this one shares; null: it has its own
std::unique_ptr<Scheduler> make_seeded(Scheduler::Options options, const Scheduler* fibers_of);

}  // namespace chorale::fibers
