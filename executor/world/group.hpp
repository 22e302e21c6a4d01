/// \file
/// Group: what the handles of a world share in one process.
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

#include "../cpu/scheduler.hpp"
#include "chorale/error.hpp"
#include "control.hpp"
#include "fork.hpp"
#include "process.hpp"
#include "shared_memory.hpp"
#include "thrown.hpp"

namespace chorale::world {

/// Of a world over several hosts.
struct Hosts {
  std::vector<std::string> names;  ///< by host
  std::vector<Descriptor> links;   ///< by host: connections of this rank, if it speaks for its host
};

class Mirror;

/// The control memory, and how ranks wait for what stands there: on a futex, or as a fiber of the seeded
/// scheduler. Thread-safe.
class Group {
 public:
  struct Options {
    unsigned workers = 0;
    std::optional<uint64_t> seed;
    std::chrono::nanoseconds timeout{0};
  };

  /// All ranks in this process.
  /// \param before  the group whose survivors these are, with their ranks there; null: none
  Group(int ranks, const Options& options, Group* before = nullptr, const std::vector<int>& former = {});

  /// `control`, a Control that all ranks have joined. Watches the others' processes.
  Group(Mapping control, int rank, const Options& options, Hosts hosts = {});

  ~Group();

  int ranks() const { return int(control_->ranks); }
  bool local() const { return local_; }

  /// Which host a rank is on, from 0 in the order of their lowest ranks. Ranks of one share memory.
  uint32_t host(int rank) const { return control_->seats()[rank].host; }
  /// Whether two ranks share memory.
  bool on_one_host(int rank, int other) const { return host(rank) == host(other); }
  /// Whether there is more than one.
  bool several_hosts() const { return several_hosts_; }
  /// "host 1 (node8)".
  std::string host_text(int rank) const;
  /// For what reaches peers by memory.
  /// \throws UsageError that names `what` and the hosts, if there are several
  void require_one_host(const std::string& what) const;

  /// Whether this process is a fork of the one that made this: it is no rank, and must not look like one.
  bool forked() const { return origin_.forked(); }
  /// \throws UsageError that names the rank if it is
  void require_own_process();

  std::chrono::nanoseconds timeout() const { return options_.timeout; }
  AbortWord* abort_word() { return &control_->abort; }
  cpu::Scheduler& scheduler() { return *scheduler_; }

  /// Why the collective in which a rank waits cannot end; "" if it may. Asked while the rank waits, by any
  /// thread.
  using Doubt = std::function<std::string()>;

  /// Collective, the last step of a join: returns once all ranks of all hosts have made their groups.
  /// \throws RunError on all ranks if one of them has failed, with its reason and text
  void complete_join(int rank);

  // The collectives of World. `what` has to be the same on all ranks: if it is not, all of them throw, and
  // none gets what the others said. If `doubt` gives a reason, the world is stopped, and all ranks throw it.
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

  /// What this rank's reset() does first, before any rank goes on, for `who`; empty: nothing more.
  void before_reset(int rank, const void* who, std::function<void()> what);

  /// What `rank`, of this process, shows the others in a collective. Kept for it: who leaves the collective
  /// as the world stops would else take it from those that still look. Null: nothing more.
  void show(int rank, std::shared_ptr<const void> what);
  std::shared_ptr<const void> shown(int rank);

  /// See LaunchCount: the rank's word that all ranks see, and the last number of an executor of it.
  std::atomic<uint64_t>& launches(int rank) { return control_->seats()[rank].launches; }
  std::atomic<uint64_t>& last_call(int rank) { return control_->seats()[rank].call; }
  uint32_t& executors(int rank) { return executors_[size_t(rank)]; }

  /// By rank: which it had in the world whose survivors these are; empty if there was none.
  std::vector<int> former_ranks() const;

  /// Stops the world; false if somebody did before. abort_word()->stop is set when it returns.
  bool raise(Stop stop, int rank, const std::string& why);
  /// The same, of what is the whole reason.
  bool raise_as_said(Stop stop, int rank, const std::string& why);

 private:
  friend class Mirror;
  friend class Succession;
  struct Waiter;

  void start(bool complete, const cpu::Scheduler* fibers_of);
  void meet_for(Collective what, int rank, const Doubt& doubt = {}, bool obey_stop = true);
  size_t next_half(int rank);
  /// Rank `rank` is in its meeting number `wanted`. True if it was the last, and all others may go on.
  bool arrive(Meeting& meeting, std::atomic<uint64_t> Seat::*number, int rank, uint64_t wanted);
  void clear_stop();
  std::optional<Thrown> prepare_reset(int rank, std::exception_ptr& failed);
  void meet_in_reset(int rank);
  void meet(Meeting& meeting, std::atomic<uint64_t> Seat::*number, int rank, bool obey_stop, const char* what,
            const Doubt& doubt = {});
  void wait(const Waiter& waiter, const char* what);
  [[noreturn]] void throw_stopped();
  std::string missing(std::atomic<uint64_t> Seat::*number, uint64_t wanted, bool only_left);
  std::string process_text(int rank);
  std::string doubted();
  /// "rank 3 has launched 50 calls, and rank 1 51; " if the latter is the one asked for; "" if none has
  /// launched fewer of the same executor.
  std::string behind_text(int rank);
  /// "ranks 0 and 1 have launched different calls, ...; "; "" if all that have launched as many calls of the
  /// same executor as `rank` have launched the same.
  std::string different_text(int rank);
  /// "rank 1": those that have left.
  std::string left_text();
  void ring();

  Options options_;
  const Origin origin_;
  bool local_;
  int rank_ = -1;         ///< unless all are in this process
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
  std::vector<const Doubt*> doubts_;   ///< of the ranks of this process that wait, by rank; null: none
  std::atomic<int> in_succession_{0};  ///< ranks of this process that wait for the next world
  std::mutex next_mutex_;
  std::shared_ptr<Group> next_;  ///< of a local world: what is offered
  std::vector<std::string> host_names_;
  std::unique_ptr<Mirror> mirror_;  ///< of the rank that speaks for its host; last, since it uses the others
};

/// Between looks for dead peers.
inline constexpr std::chrono::milliseconds check_interval{20};

/// Sleeps until `bell` differs from `seen` or `limit` has passed. Works between processes.
void sleep_on(std::atomic<uint32_t>& bell, uint32_t seen, std::chrono::nanoseconds limit);
void wake_all(std::atomic<uint32_t>& bell);

/// "30 s", "0.5 s".
std::string seconds_text(std::chrono::nanoseconds time);
/// What can be done where nothing is wrong but the time that a wait is given.
inline constexpr const char* more_time =
    "if it only takes longer, make the world with a longer timeout (JoinOptions, LocalOptions; "
    "CHORALE_TIMEOUT counts where Config::join() or local() makes them)";

/// "rank 3", "ranks 1, 2 and 5 more".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace chorale::world
