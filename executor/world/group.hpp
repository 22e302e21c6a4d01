/// \file
/// All handles of a world in one process share one Group.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chorale/error.hpp"
#include "control.hpp"
#include "executor/fibers/scheduler.hpp"
#include "executor/system/fork.hpp"
#include "executor/system/shared_memory.hpp"
#include "executor/system/thrown.hpp"
#include "process.hpp"

namespace chorale::world {

/// Describes the hosts of a world that has several.
struct Hosts {
  std::vector<std::string> names;         ///< by host
  std::vector<system::Descriptor> links;  ///< by host: this rank's connections, if it exchanges control
                                          ///< messages for its host
};

class ControlRelay;

/// Holds the control memory, and lets ranks wait for changes in it. A rank waits on a futex, or as a fiber of
/// the seeded scheduler. Thread-safe.
class Group {
 public:
  struct Options {
    unsigned workers = 0;
    std::optional<uint64_t> seed;
    std::chrono::nanoseconds timeout{0};
  };

  /// Makes a group with all ranks in this process.
  /// \param before  the group whose survivors() or split() makes this one; null: none
  /// \param former  the ranks' numbers in `before`
  Group(int ranks, const Options& options, Group* before = nullptr, const std::vector<int>& former = {});

  /// Makes a group from `control`, a Control that all ranks have joined. It watches the processes of the
  /// other ranks.
  Group(system::Mapping control, int rank, const Options& options, Hosts hosts = {});

  ~Group();

  /// Makes the control memory of a world of some ranks of this one, for the second constructor. The memory is
  /// complete, and all ranks have joined. It has no name. This world's ranks must be processes of one host.
  /// \param rank     the calling rank
  /// \param members  the ranks, in the order of their numbers in the new world
  /// \param offered_in  the word of the attempt of a shrink; 0: none
  system::Descriptor make_control(int rank, const std::vector<int>& members, uint64_t offered_in = 0) const;

  int ranks() const { return int(control_->ranks); }
  bool local() const { return local_; }

  /// Returns the host of a rank. Hosts are numbered from 0 in the order of their lowest ranks. Ranks of one
  /// host share memory.
  uint32_t host(int rank) const { return control_->seats()[rank].host; }
  /// Returns whether two ranks share memory.
  bool on_one_host(int rank, int other) const { return host(rank) == host(other); }
  /// Returns whether there is more than one host.
  bool several_hosts() const { return several_hosts_; }
  /// Returns text like "host 1 (node8)".
  std::string host_text(int rank) const;
  /// Checks that there is only one host. Code that accesses peers' memory calls it.
  /// \throws UsageError that names `what` and two hosts, if there are several
  void require_one_host(const std::string& what) const;

  /// Returns whether this process is a fork of the process that made this group. A fork is not a rank, and
  /// must not act as one.
  bool forked() const { return origin_.forked(); }
  /// Checks that this process is no fork.
  /// \throws UsageError that names the rank if this process is a fork
  void require_own_process();

  const Options& options() const { return options_; }
  std::chrono::nanoseconds timeout() const { return options_.timeout; }
  AbortWord* abort_word() { return &control_->abort; }
  fibers::Scheduler& scheduler() { return *scheduler_; }

  /// Returns why the collective in which a rank waits cannot end; "" if it can. Any thread may call it while
  /// the rank waits.
  using Doubt = std::function<std::string()>;

  /// Runs the last step of a join; collective. Returns when all ranks of all hosts have made their groups.
  /// \throws RunError on all ranks if one of them has failed, with the reason and text of that rank
  void complete_join(int rank);

  // These are the collectives of World. `what` must be the same on all ranks. If it differs, all ranks throw,
  // and none gets data. If `doubt` returns a reason, the world stops and all ranks throw that reason.
  void barrier(int rank, Collective what = Collective::barrier);
  std::vector<std::vector<std::byte>> allgather(int rank, std::span<const std::byte> mine,
                                                Collective what = Collective::allgather,
                                                const Doubt& doubt = {}, bool obey_stop = true);
  void reset(int rank);
  uint64_t resets(int rank) { return control_->seats()[rank].resets.load(std::memory_order_relaxed); }
  void leave(int rank);
  void check();

  /// Stops the world if a peer's process has ended without leaving the world. It looks at most every 20 ms.
  void check_peers();

  /// Calls check_peers() after wait_for_ending_peers(). A rank whose step has failed calls it, because a peer
  /// that died may be the cause.
  void look_for_dead();

  /// Waits until all peer processes that have begun to end have ended, at most for the world's timeout (30 s
  /// if there is none). A rank that could not open a peer's memory calls it, because a killed process loses
  /// its files before it ends.
  void wait_for_ending_peers() const;

  /// Registers a function that this rank's reset() calls for `who` before any rank goes on. An empty `what`
  /// unregisters it.
  void before_reset(int rank, const void* who, std::function<void()> what);

  /// Sets the object that `rank`, a rank of this process, shows to the others in a collective; null: none.
  /// The group keeps the object. Otherwise a rank that leaves the collective when the world stops would
  /// destroy it while others still read it.
  void show(int rank, std::shared_ptr<const void> what);
  std::shared_ptr<const void> shown(int rank);

  // These are for LaunchCount. All ranks see the first two words. The third word is the number of the rank's
  // last executor.
  std::atomic<uint64_t>& launches(int rank) { return control_->seats()[rank].launches; }
  std::atomic<uint64_t>& last_call(int rank) { return control_->seats()[rank].call; }
  uint32_t& executors(int rank) { return executors_[size_t(rank)]; }

  /// Returns, by rank, its rank in the world whose survivors() made this one; empty if there is no such
  /// world.
  std::vector<int> former_ranks() const;

  /// Stops the world. Returns false if the world had already stopped. abort_word()->stop is set when it
  /// returns.
  bool raise(Stop stop, int rank, const std::string& why);
  /// Does the same, but takes `why` as the whole reason. raise() may prepend more.
  bool raise_as_said(Stop stop, int rank, const std::string& why);

 private:
  friend class ControlRelay;
  friend class Shrink;
  struct Waiter;

  void start(bool complete, const fibers::Scheduler* fibers_of);
  void barrier_for(Collective what, int rank, const Doubt& doubt = {}, bool obey_stop = true);
  size_t next_half(int rank);
  /// Counts `rank` as arrived at barrier number `wanted`. Returns true if it is the last rank, so that all
  /// others may go on.
  bool arrive(Barrier& barrier, std::atomic<uint64_t> Seat::*number, int rank, uint64_t wanted);
  void clear_stop();
  std::optional<system::Thrown> prepare_reset(int rank, std::exception_ptr& failed);
  void reset_barrier(int rank);
  void enter(Barrier& barrier, std::atomic<uint64_t> Seat::*number, int rank, bool obey_stop,
             const char* what, const Doubt& doubt = {});
  void wait(const Waiter& waiter, const char* what);
  [[noreturn]] void throw_stopped();
  std::string missing(std::atomic<uint64_t> Seat::*number, uint64_t wanted, bool only_left);
  std::string process_text(int rank);
  std::string doubted();
  /// Returns text like "rank 3 has launched 50 calls, and rank 1 51; " for rank 1. Returns "" if no rank has
  /// launched fewer calls of the same executor.
  std::string behind_text(int rank);
  /// Returns text like "ranks 0 and 1 have launched different calls, ...; ". Returns "" if all ranks that
  /// have launched as many calls of the same executor as `rank` have launched the same call.
  std::string different_text(int rank);
  /// Returns the ranks that have left, as text like "rank 1".
  std::string left_text();
  void ring();

  Options options_;
  const system::Origin origin_;
  bool local_;
  int rank_ = -1;         ///< this process's rank; -1 if all are in this process
  bool joining_ = false;  ///< other ranks may still fail to join
  bool several_hosts_ = false;
  std::shared_ptr<std::byte> heap_;
  system::Mapping mapping_;
  Control* control_;
  std::unique_ptr<fibers::Scheduler> scheduler_;
  Watch watch_;
  std::atomic<int64_t> next_check_ns_{0};
  std::vector<std::map<const void*, std::function<void()>>> before_reset_;  ///< by rank
  std::vector<uint64_t> resets_over_;  ///< by rank: the number of the last reset that it completed
  std::vector<uint32_t> executors_;    ///< by rank
  std::mutex shown_mutex_;
  std::vector<std::shared_ptr<const void>> shown_;  ///< by rank
  std::mutex doubts_mutex_;
  std::vector<const Doubt*> doubts_;  ///< by rank: the doubt of a rank of this process that waits; null:
                                      ///< none
  std::atomic<int> in_shrink_{0};     ///< the ranks of this process that wait for the next world
  std::mutex next_mutex_;
  std::vector<std::shared_ptr<Group>> next_;  ///< in a local world, by rank: the next world that it offers
  std::vector<std::string> host_names_;
  std::unique_ptr<ControlRelay> relay_;  ///< only on the lowest rank of its host; the last member, because it
                                         ///< uses the others
};

/// Sets the time between two checks for dead peers.
inline constexpr std::chrono::milliseconds check_interval{20};

/// Sleeps until `bell` differs from `seen` or `limit` has passed. Works between processes.
void sleep_on(std::atomic<uint32_t>& bell, uint32_t seen, std::chrono::nanoseconds limit);
void wake_all(std::atomic<uint32_t>& bell);

}  // namespace chorale::world
