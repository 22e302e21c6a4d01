/// \file
/// The Scheduler runs thread blocks as fibers on the threads that launch them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chorale/device/deadline.hpp"
#include "chorale/device/group.hpp"
#include "stuck.hpp"

namespace chorale::fibers {

/// Returns a line about a block of a launch, for errors. It is called while the launch lasts.
using Describe = std::function<std::string(const Stuck&)>;

struct LaunchResult {
  Stop stop = Stop::none;
  /// After a stop this lists all unfinished blocks of this process's ranks, by rank and block.
  std::vector<Stuck> stuck;
};

/// Lets a block call its scheduler. It is valid during the block's body. The end of a park() and a step()
/// count as progress of the launch.
class BlockHost : public HostBlock {
 public:
  /// Does what park() does, but its end does not count as progress: threads of a block that synchronise again
  /// and again may all be waiting for a peer.
  virtual void park_at_barrier(bool (*ready)(const void*), const void* state) = 0;

  /// Tells the scheduler that the block has finished an operation, which counts as progress of the launch.
  virtual void moved() = 0;

  /// Records what the block waits for, until the next call. It is read only if the world stops before the
  /// block ends.
  void set_waiting(const Waiting& waiting) { waiting_ = waiting; }
  const Waiting& waiting() const { return waiting_; }

 protected:
  Waiting waiting_;
};

/// Runs thread blocks. The callers of launch() are its workers: up to `workers` of them run blocks of any
/// rank. The others sleep until their launch has ended or a worker's place is free. There are no other
/// threads.
///
/// With a seed there is one thread, ranks are fibers too (run_seeded), and a random draw makes every choice.
class Scheduler {
 public:
  struct Options {
    int ranks = 1;         ///< ranks of the world
    bool complete = true;  ///< all ranks of the world launch here
    unsigned workers = 0;  ///< 0: one per core
    std::optional<uint64_t> seed = std::nullopt;
    /// Limits the time without progress for a launch of which a block waits; 0: no limit.
    std::chrono::nanoseconds timeout{0};
    AbortWord* abort = nullptr;  ///< never null
    /// Stops the world; the first caller wins. Sets abort->stop before it returns. Any thread may call it.
    std::function<void(Stop, int rank, const std::string& why)> raise = {};
    /// Returns the number of ranks that wait in a collective of the world. The collective cannot end while
    /// another rank is in a launch, so these ranks count as stuck too. May be empty.
    std::function<int()> ranks_in_collective = {};
    /// Checks for dead peers. Any thread calls it, about every 20 ms while nothing can run. May be empty.
    std::function<void()> idle_check = {};
  };

  virtual ~Scheduler() = default;

  /// Runs body(block, host) for block = 0 ... blocks-1 of `rank`; returns when all have ended. A rank makes
  /// its launches one after the other. With a seed a block of a launch may also launch; it waits until that
  /// launch has ended. In a stopped world nothing runs.
  /// \throws the first exception of a body
  /// \throws RunError resources if there is no memory for the blocks. Then none of them runs, and the world
  /// is stopped (aborted)
  /// \throws UsageError as check_caller() does
  virtual LaunchResult launch(int rank, int blocks,
                              const std::function<void(int block, BlockHost& host)>& body,
                              const Describe& describe = {}) = 0;

  /// Tells the scheduler whether code outside the fibers (a proxy thread) may make progress: +1 while it may,
  /// -1 after. While the count is not 0, a state in which nothing runs is not a deadlock.
  virtual void busy(int change) = 0;

  /// Tells the scheduler that data has moved for which blocks of this process may wait. Their launches then
  /// count as having made progress. Any thread may call it.
  virtual void moved() = 0;

  /// Tells the scheduler that `rank` will not launch again. Only for a complete world.
  virtual void end_rank(int rank) = 0;

  // --- for World ---

  virtual bool seeded() const = 0;

  /// Checks the caller. A function that may launch or wait calls this before it changes anything.
  /// \throws UsageError with a seed, unless one of the scheduler's fibers calls
  virtual void check_caller() const = 0;

  /// Runs the bodies as fibers, by rank, and returns when all have ended. Bodies must not throw. Only with a
  /// seed.
  virtual void run_seeded(std::vector<std::function<void()>> bodies) = 0;

  /// Lets others run until ready(state) holds or the world stops; returns false after a stop. If `obey_stop`
  /// is false, a stop does not end the wait. Only with a seed, in a body of run_seeded().
  /// \throws UsageError elsewhere
  virtual bool wait(bool (*ready)(const void*), const void* state, bool obey_stop = true) = 0;

  /// Prepares for new launches after a stop has been cleared. No launch may be active.
  virtual void rearm() = 0;
};

/// Makes the scheduler that the options describe.
/// \param fibers_of with a seed: a scheduler whose fibers also launch here, on the same thread and by its
/// draws; null: this scheduler has its own fibers
std::unique_ptr<Scheduler> make_scheduler(Scheduler::Options options, const Scheduler* fibers_of = nullptr);

}  // namespace chorale::fibers
