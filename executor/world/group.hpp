/// \file
/// The handles of a world in one process share a Group.
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

#include "../fibers/scheduler.hpp"
#include "../system/fork.hpp"
#include "../system/shared_memory.hpp"
#include "../system/thrown.hpp"
#include "chorale/error.hpp"
#include "control.hpp"
#include "process.hpp"

namespace chorale::world {

/// Describes the hosts of a world over several.
struct Hosts {
  std::vector<std::string> names;  ///< by host
  std::vector<Descriptor> links;   ///< by host: connections of this rank, if it speaks for its host
};

class ControlRelay;

/// Holds the control memory, and lets ranks wait for changes in it: on a futex, or as a fiber of the seeded
/// scheduler. Thread-safe.
class Group {
 public:
  struct Options {
    unsigned workers = 0;
    std::optional<uint64_t> seed;
    std::chrono::nanoseconds timeout{0};
  };

  /// Makes a group with all ranks in this process.
  /// \param before  the group whose survivors these are; null: none
  /// \param former  their ranks in `before`
  Group(int ranks, const Options& options, Group* before = nullptr, const std::vector<int>& former = {});

  /// Takes `control`, a Control that all ranks have joined. Watches the processes of the other ranks.
  Group(Mapping control, int rank, const Options& options, Hosts hosts = {});

  ~Group();

  int ranks() const { return int(control_->ranks); }
  bool local() const { return local_; }

  /// Returns the host of a rank, from 0 in the order of the hosts' lowest ranks. Ranks of one host share
  /// memory.
  uint32_t host(int rank) const { return control_->seats()[rank].host; }
  /// Returns whether two ranks share memory.
  bool on_one_host(int rank, int other) const { return host(rank) == host(other); }
  /// Returns whether there is more than one host.
  bool several_hosts() const { return several_hosts_; }
  /// Returns text like "host 1 (node8)".
  std::string host_text(int rank) const;
  /// Checks that there is one host, for code that reaches peers by memory.
  /// \throws UsageError that names `what` and the hosts, if there are several
  void require_one_host(const std::string& what) const;

  /// Returns whether this process is a fork of the one that made this. A fork is no rank, and must not look
  /// like one.
  bool forked() const { return origin_.forked(); }
  /// Checks that this process is no fork.
  /// \throws UsageError that names the rank if it is one
  void require_own_process();

  std::chrono::nanoseconds timeout() const { return options_.timeout; }
  AbortWord* abort_word() { return &control_->abort; }
  cpu::Scheduler& scheduler() { return *scheduler_; }

  /// Returns why the collective in which a rank waits cannot end; "" if it may. Any thread calls it while the
  /// rank waits.
  using Doubt = std::function<std::string()>;

  /// Collective, the last step of a join: returns once all ranks of all hosts have made their groups.
  /// \throws RunError on all ranks if one of them has failed, with its reason and text
  void complete_join(int rank);

  // These are the collectives of World. `what` has to be the same on all ranks: if it is not, all of them
  // throw, and none gets what the others said. If `doubt` gives a reason, the world stops and all ranks throw
  // the reason.
  void barrier(int rank, Collective what = Collective::barrier);
  std::vector<std::vector<std::byte>> allgather(int rank, std::span<const std::byte> mine,
                                                Collective what = Collective::allgather,
                                                const Doubt& doubt = {}, bool obey_stop = true);
  void reset(int rank);
  uint64_t resets(int rank) { return control_->seats()[rank].resets.load(std::memory_order_relaxed); }
  void leave(int rank);
  void check();

  /// Looks for peers whose process has ended without leaving, at most every 20 ms, and stops the world if so.
  void check_peers();

  /// Calls check_peers() after wait_for_ending_peers(). A rank whose step has failed calls it, because a peer
  /// that died may be the cause.
  void look_for_dead();

  /// Waits until peers whose processes have begun to end have ended, at most for the world's timeout (30 s if
  /// there is none). A rank that could not open a peer's memory calls it: a process that is killed loses its
  /// files first.
  void wait_for_ending_peers() const;

  /// Sets what this rank's reset() does first, for `who`, before any rank goes on. An empty `what` takes it
  /// away.
  void before_reset(int rank, const void* who, std::function<void()> what);

  /// Sets what `rank`, of this process, shows the others in a collective; null: nothing. The group keeps
  /// it, because a rank that leaves the collective as the world stops would else take it from those that
  /// still look.
  void show(int rank, std::shared_ptr<const void> what);
  std::shared_ptr<const void> shown(int rank);

  // See LaunchCount: all ranks see the first two words. The third is the rank's last number of an executor.
  std::atomic<uint64_t>& launches(int rank) { return control_->seats()[rank].launches; }
  std::atomic<uint64_t>& last_call(int rank) { return control_->seats()[rank].call; }
  uint32_t& executors(int rank) { return executors_[size_t(rank)]; }

  /// Returns, by rank, the rank that it had in the world whose survivors these are; empty if there was none.
  std::vector<int> former_ranks() const;

  /// Stops the world. Returns false if somebody did before. abort_word()->stop is set when it returns.
  bool raise(Stop stop, int rank, const std::string& why);
  /// Does the same with `why` as the whole reason: raise() may put more before it.
  bool raise_as_said(Stop stop, int rank, const std::string& why);

 private:
  friend class ControlRelay;
  friend class Shrink;
  struct Waiter;

  void start(bool complete, const cpu::Scheduler* fibers_of);
  void barrier_for(Collective what, int rank, const Doubt& doubt = {}, bool obey_stop = true);
  size_t next_half(int rank);
  /// Counts `rank` into its barrier number `wanted`. Returns true if it is the last, so all others may go on.
  bool arrive(Barrier& barrier, std::atomic<uint64_t> Seat::*number, int rank, uint64_t wanted);
  void clear_stop();
  std::optional<Thrown> prepare_reset(int rank, std::exception_ptr& failed);
  void reset_barrier(int rank);
  void meet(Barrier& barrier, std::atomic<uint64_t> Seat::*number, int rank, bool obey_stop, const char* what,
            const Doubt& doubt = {});
  void wait(const Waiter& waiter, const char* what);
  [[noreturn]] void throw_stopped();
  std::string missing(std::atomic<uint64_t> Seat::*number, uint64_t wanted, bool only_left);
  std::string process_text(int rank);
  std::string doubted();
  /// Returns "rank 3 has launched 50 calls, and rank 1 51; " for rank 1; "" if no rank has launched fewer
  /// calls of the same executor.
  std::string behind_text(int rank);
  /// Returns "ranks 0 and 1 have launched different calls, ...; "; "" if all that have launched as many calls
  /// of the same executor as `rank` have launched the same.
  std::string different_text(int rank);
  /// Returns the ranks that have left, as in "rank 1".
  std::string left_text();
  void ring();

  Options options_;
  const Origin origin_;
  bool local_;
  int rank_ = -1;         ///< this process's rank; -1 if all are in this process
  bool joining_ = false;  ///< other ranks may still fail to join
  bool several_hosts_ = false;
  std::shared_ptr<std::byte> heap_;
  Mapping mapping_;
  Control* control_;
  std::unique_ptr<cpu::Scheduler> scheduler_;
  Watch watch_;
  std::atomic<int64_t> next_check_ns_{0};
  std::vector<std::map<const void*, std::function<void()>>> before_reset_;  ///< by rank
  std::vector<uint64_t> resets_over_;  ///< by rank: number of the last one in which it met the others
  std::vector<uint32_t> executors_;    ///< by rank
  std::mutex shown_mutex_;
  std::vector<std::shared_ptr<const void>> shown_;  ///< by rank
  std::mutex doubts_mutex_;
  std::vector<const Doubt*> doubts_;  ///< of the ranks of this process that wait, by rank; null: none
  std::atomic<int> in_shrink_{0};     ///< ranks of this process that wait for the next world
  std::mutex next_mutex_;
  std::shared_ptr<Group> next_;  ///< of a local world: the offered next one
  std::vector<std::string> host_names_;
  std::unique_ptr<ControlRelay>
      relay_;  ///< of the rank that speaks for its host; last, since it uses the others
};

/// This is the time between looks for dead peers.
inline constexpr std::chrono::milliseconds check_interval{20};

/// Sleeps until `bell` differs from `seen` or `limit` has passed. Works between processes.
void sleep_on(std::atomic<uint32_t>& bell, uint32_t seen, std::chrono::nanoseconds limit);
void wake_all(std::atomic<uint32_t>& bell);

/// Returns text like "30 s" or "0.5 s".
std::string seconds_text(std::chrono::nanoseconds time);
/// Says what to do when only the time that a wait is given is wrong.
inline constexpr const char* more_time =
    "if it only takes longer, make the world with a longer timeout (JoinOptions, LocalOptions; "
    "CHORALE_TIMEOUT counts where Config::join() or local() makes them)";

/// Returns text like "rank 3" or "ranks 1, 2 and 5 more".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace chorale::world
