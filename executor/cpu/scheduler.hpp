/// \file
/// Scheduler: runs thread blocks as fibers on the threads that launch them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../interpreter/stuck.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/group.hpp"

namespace chorale::cpu {

using interpreter::Stuck;
using interpreter::Waiting;

/// One line on a block of a launch, for errors: asked while the launch lasts.
using Describe = std::function<std::string(const Stuck&)>;

struct LaunchResult {
  Stop stop = Stop::none;
  std::vector<Stuck> stuck;  ///< all unfinished blocks of this process's ranks, by rank and block; if stopped
};

/// A block's way to its scheduler, valid during the body. The end of a park(), and a step(), are progress of
/// the launch.
class BlockHost : public HostBlock {
 public:
  /// The same as park(), for a wait whose end is no progress: threads of a block that meet again and again
  /// may all be waiting for a peer.
  virtual void meet(bool (*ready)(const void*), const void* state) = 0;

  /// The block has finished an operation, which is progress of the launch.
  virtual void moved() = 0;

  /// Kept until the next call; read only when the world stops while the block is unfinished.
  void set_waiting(const Waiting& waiting) { waiting_ = waiting; }
  const Waiting& waiting() const { return waiting_; }

 protected:
  Waiting waiting_;
};

class SchedulerImpl;

/// Callers of launch() are the workers: up to `workers` of them run blocks of any rank, the others sleep
/// until their launch has ended or a worker's place is free. There are no other threads.
///
/// With a seed there is one thread, ranks are fibers too (run_seeded), and every choice is drawn.
class Scheduler {
 public:
  struct Options {
    int ranks = 1;         ///< of the world
    bool complete = true;  ///< all ranks of the world launch here
    unsigned workers = 0;  ///< 0: one a core
    std::optional<uint64_t> seed = std::nullopt;
    /// How long a launch may go without progress while one of its blocks waits; 0: for ever.
    std::chrono::nanoseconds timeout{0};
    AbortWord* abort = nullptr;  ///< never null
    /// Stops the world, first caller wins; sets abort->stop before it returns. Any thread.
    std::function<void(Stop, int rank, const std::string& why)> raise = {};
    /// Ranks that wait in a collective of the world, which cannot end while one of the others sits in a
    /// launch: they count as stuck too. May be empty.
    std::function<int()> ranks_in_collective = {};
    /// Looks for dead peers; called about every 20 ms while nothing can run. Any thread. May be empty.
    std::function<void()> idle_check = {};
  };

  /// \param fibers_of  with a seed: whose fibers launch here too, on the same thread and by its draws; null:
  ///                   it has fibers of its own
  explicit Scheduler(Options options, const Scheduler* fibers_of = nullptr);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Runs body(block, host) for block = 0 ... blocks-1 of `rank`; returns when all have ended. Launches of
  /// one rank are made one after the other; with a seed also by a block of an earlier one, for which that
  /// block then waits. In a stopped world nothing runs.
  /// \throws what a body threw first, or RunError resources if there is no memory for the blocks, of which
  ///         then none runs (the world is then stopped: aborted)
  /// \throws UsageError as check_caller()
  LaunchResult launch(int rank, int blocks, const std::function<void(int block, BlockHost& host)>& body,
                      const Describe& describe = {});

  /// Something outside the fibers (a proxy thread) may make progress: +1 while it may, -1 after. While the
  /// count is not 0 a state in which nothing runs is not called a deadlock.
  void busy(int change);

  /// Data has come or gone that blocks of this process may be waiting for: their launches have made progress.
  /// Any thread.
  void moved();

  /// Of a complete world: `rank` will not launch again.
  void end_rank(int rank);

  // --- for World ---

  bool seeded() const;

  /// Before a call that may launch or wait changes anything.
  /// \throws UsageError with a seed, unless one of its fibers calls
  void check_caller() const;

  /// Seeded only: runs the bodies as fibers, by rank, and returns when all have ended. Bodies do not throw.
  void run_seeded(std::vector<std::function<void()>> bodies);

  /// Seeded only, in a body of run_seeded(): lets others run until ready(state) or a stop. False: a stop.
  /// With `obey_stop` false a stop does not end the wait. \throws UsageError elsewhere
  bool wait(bool (*ready)(const void*), const void* state, bool obey_stop = true);

  /// After a stop has been taken back; no launch is active.
  void rearm();

 private:
  std::unique_ptr<SchedulerImpl> impl_;
};

}  // namespace chorale::cpu
