#include "group.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>
#include <thread>

#include "control_relay.hpp"
#include "executor/system/host_pages.hpp"
#include "executor/system/texts.hpp"
#include "steps.hpp"

namespace chorale::world {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds stop_patience{1};  // the wait for a rank that is writing why it stops the
                                                  // world

}  // namespace

/// A Waiter is a rank that waits in a barrier.
struct Group::Waiter {
  Group* group;
  Barrier* barrier;
  std::atomic<uint64_t> Seat::*number;
  uint64_t wanted;
  int rank;
  bool obey_stop;
  const Doubt& doubt;

  bool met() const { return barrier->passed.load(std::memory_order_acquire) >= wanted; }

  /// Returns a reason to stop waiting; "" if there is none.
  std::string doubted() const {
    const std::string why = doubt ? doubt() : "";
    return why.empty() || met() ? "" : why;
  }

  /// Returns whether a rank has left that this barrier still needs.
  bool hopeless() const {
    Control& control = *group->control_;
    if (control.leavers.load(std::memory_order_acquire) == 0) return false;
    for (uint32_t peer = 0; peer < control.ranks; ++peer) {
      Seat& seat = control.seats()[peer];
      if (seat.presence.load(std::memory_order_acquire) == Presence::left && (seat.*number).load() < wanted) {
        return !met();
      }
    }
    return false;
  }
};

Group::Group(int ranks, const Options& options, Group* before, const std::vector<int>& former)
    : options_(options), local_(true) {
  heap_ = zeroed_pages(Control::bytes(ranks));
  if (!heap_) throw std::bad_alloc();
  control_ = reinterpret_cast<Control*>(heap_.get());
  control_->ranks = uint32_t(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    control_->seats()[rank].presence = Presence::joined;
    if (before) control_->seats()[rank].former_rank = uint32_t(former[size_t(rank)]);
  }
  start(true, before ? before->scheduler_.get() : nullptr);
}

Group::Group(system::Mapping control, int rank, const Options& options, Hosts hosts)
    : options_(options),
      local_(false),
      rank_(rank),
      mapping_(std::move(control)),
      host_names_(std::move(hosts.names)) {
  control_ = reinterpret_cast<Control*>(mapping_.data());
  try {
    at_step(CollectiveStep::group);
    const Process self = control_->seats()[rank].process;
    for (int peer = 0; peer < ranks(); ++peer) {
      if (host(peer) != host(rank)) {
        several_hosts_ = true;
        continue;  // the control relay reports its end
      }
      const Process& process = control_->seats()[peer].process;
      if (peer != rank && process != self) watch_.add(peer, process);
    }
    start(ranks() == 1, nullptr);
    if (!hosts.links.empty())
      relay_ = std::make_unique<ControlRelay>(*this, host(rank), std::move(hosts.links));
  } catch (...) {
    // The others have seen this rank join, so tell them why it fails.
    const system::Thrown thrown = system::thrown_now();
    control_->refusal.write(thrown.reason, system::told_text(rank, thrown));
    tell_hosts(hosts.links, rank, thrown);
    leave(rank);
    throw;
  }
}

Group::~Group() = default;

system::Descriptor Group::make_control(int rank, const std::vector<int>& members, uint64_t offered_in) const {
  const int ranks = int(members.size());
  system::Descriptor memory = system::create_shared(Control::bytes(ranks));
  const system::Mapping mapping(memory, Control::bytes(ranks));
  Control& next = *reinterpret_cast<Control*>(mapping.data());
  next.magic = Control::version;
  next.ranks = uint32_t(ranks);
  next.owner = control_->seats()[rank].process;
  next.joined = uint32_t(ranks);
  next.offered_in = offered_in;
  for (int member = 0; member < ranks; ++member) {
    Seat& to = next.seats()[member];
    to.process = control_->seats()[members[size_t(member)]].process;
    to.former_rank = uint32_t(members[size_t(member)]);
    to.presence = Presence::joined;
  }
  return memory;
}

void Group::start(bool complete, const fibers::Scheduler* fibers_of) {
  before_reset_.resize(size_t(ranks()));
  executors_.resize(size_t(ranks()));
  resets_over_.resize(size_t(ranks()));
  shown_.resize(size_t(ranks()));
  doubts_.resize(size_t(ranks()));
  next_.resize(size_t(ranks()));
  fibers::Scheduler::Options options{
      .ranks = ranks(),
      .complete = complete,
      .workers = options_.workers,
      .seed = options_.seed,
      .timeout = options_.timeout,
      .abort = abort_word(),
      .raise = [this](Stop stop, int rank, const std::string& why) { raise(stop, rank, why); },
      .ranks_in_collective = {},
      .idle_check = {}};
  if (complete) {
    options.ranks_in_collective = [this] {
      return int(control_->barrier.arrived.load()) + in_shrink_.load(std::memory_order_relaxed);
    };
  }
  if (!local_) options.idle_check = [this] { check_peers(); };
  scheduler_ = fibers::make_scheduler(std::move(options), fibers_of);
}

void Group::complete_join(int rank) {
  joining_ = true;
  barrier_for(Collective::join, rank);
  joining_ = false;
}

void Group::barrier(int rank, Collective what) { barrier_for(what, rank); }

/// Returns which of the two halves of a seat the rank's next exchange uses.
size_t Group::next_half(int rank) {
  return (control_->seats()[rank].arrived.load(std::memory_order_relaxed) + 1) % 2;
}

/// Runs the barrier of a collective call. All kinds of calls use the same barrier. So each rank sees which
/// call the others make, and all find the same mismatch.
void Group::barrier_for(Collective what, int rank, const Doubt& doubt, bool obey_stop) {
  const size_t half = next_half(rank);
  control_->seats()[rank].collective[half] = what;
  enter(control_->barrier, &Seat::arrived, rank, obey_stop, collective_names[size_t(what)], doubt);
  const Collective first = control_->seats()[0].collective[half];
  for (int peer = 1; peer < ranks(); ++peer) {
    const Collective other = control_->seats()[peer].collective[half];
    if (other == first) continue;
    throw RunError(RunError::Reason::mismatch,
                   fmt::format("rank 0 is in {}, but rank {} in {}: all ranks have to make the same "
                               "collective calls in the same order",
                               collective_names[size_t(first)], peer, collective_names[size_t(other)]));
  }
}

std::vector<std::vector<std::byte>> Group::allgather(int rank, std::span<const std::byte> mine,
                                                     Collective what, const Doubt& doubt, bool obey_stop) {
  std::vector<std::vector<std::byte>> all(ranks());
  Seat& seat = control_->seats()[rank];
  size_t done = 0, most = 0;
  do {
    const size_t half = next_half(rank);
    seat.total_bytes[half] = mine.size();
    const size_t bytes = std::min(Seat::chunk_bytes, mine.size() - std::min(done, mine.size()));
    if (bytes) std::memcpy(seat.chunk[half], mine.data() + done, bytes);
    barrier_for(what, rank, doubt, obey_stop);
    for (int peer = 0; peer < ranks(); ++peer) {
      const Seat& from = control_->seats()[peer];
      const size_t total = from.total_bytes[half];
      most = std::max(most, total);
      if (done >= total) continue;
      all[peer].insert(all[peer].end(), from.chunk[half],
                       from.chunk[half] + std::min(Seat::chunk_bytes, total - done));
    }
    done += Seat::chunk_bytes;
  } while (done < most);
  return all;
}

/// Waits for the others in a reset. A rank whose reset timed out stays counted, and its next reset continues
/// that one. If the rank counted itself again, it would seem to be the last to arrive although a peer never
/// arrived.
void Group::reset_barrier(int rank) {
  Barrier& barrier = control_->reset;
  const char* const what = collective_names[size_t(Collective::reset)];
  uint64_t& over = resets_over_[size_t(rank)];
  const uint64_t counted = control_->seats()[rank].resets.load(std::memory_order_relaxed);
  const bool met = barrier.passed.load(std::memory_order_acquire) >= counted;
  // If the others have completed the reset and the world has stopped again since, this rank needs a new
  // reset.
  if (counted == over || (met && load_acquire(&control_->abort.stop) != 0)) {
    enter(barrier, &Seat::resets, rank, false, what);
  } else if (!met) {
    scheduler_->check_caller();
    wait({this, &barrier, &Seat::resets, counted, rank, false, {}}, what);
  }
  over = control_->seats()[rank].resets.load(std::memory_order_relaxed);
}

void Group::clear_stop() {
  for (int peer = 0; peer < ranks(); ++peer) control_->seats()[peer].arrived = 0;
  control_->barrier.arrived = 0;
  control_->barrier.passed = 0;
  control_->why_ready = 0;
  control_->abort.rank = 0;
  store_relaxed(&control_->abort.stop, 0u);
  store_release(&control_->abort.claimed, 0u);
  if (local_) scheduler_->rearm();
}

bool Group::arrive(Barrier& barrier, std::atomic<uint64_t> Seat::*number, int rank, uint64_t wanted) {
  (control_->seats()[rank].*number).store(wanted);
  const bool last = barrier.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == uint32_t(ranks());
  if (last) {
    barrier.arrived.store(0, std::memory_order_relaxed);
    if (&barrier == &control_->reset) clear_stop();
    barrier.passed.store(wanted, std::memory_order_release);
  }
  if (last || several_hosts_) ring();
  return last;
}

void Group::enter(Barrier& barrier, std::atomic<uint64_t> Seat::*number, int rank, bool obey_stop,
                  const char* what, const Doubt& doubt) {
  scheduler_->check_caller();
  if (obey_stop) check();
  const uint64_t wanted = (control_->seats()[rank].*number).load(std::memory_order_relaxed) + 1;
  if (arrive(barrier, number, rank, wanted)) return;
  const auto doubting = [this, rank](const Doubt* of) {
    const std::lock_guard lock(doubts_mutex_);
    doubts_[size_t(rank)] = of;
  };
  struct Doubting {
    const decltype(doubting)& set;
    ~Doubting() { set(nullptr); }
  } const until_the_end{doubting};
  if (doubt) doubting(&doubt);
  wait({this, &barrier, number, wanted, rank, obey_stop, doubt}, what);
}

/// Returns the first reason that a waiting rank of this process has why its collective cannot end; "" if
/// there is none.
std::string Group::doubted() {
  const std::lock_guard lock(doubts_mutex_);
  for (const Doubt* const doubt : doubts_) {
    if (!doubt) continue;
    if (std::string why = (*doubt)(); !why.empty()) return why;
  }
  return "";
}

void Group::wait(const Waiter& waiter, const char* what) {
  if (scheduler_->seeded()) {
    scheduler_->wait(
        [](const void* of) {
          const Waiter& one = *static_cast<const Waiter*>(of);
          return one.met() || one.hopeless() || !one.doubted().empty();
        },
        &waiter, waiter.obey_stop);
  }
  const auto start = Clock::now();
  for (unsigned looks = 0;; ++looks) {
    const uint32_t seen = control_->bell.load(std::memory_order_acquire);
    if (waiter.met()) return;
    // A rank says why it fails before it leaves. So look for ranks that have left before you look for what
    // they said. In the other order, a wait could miss the reason and report only that they left.
    const bool hopeless = waiter.hopeless();
    if (joining_ && control_->refusal.stands()) control_->refusal.throw_it();
    const Stop stop = Stop(load_acquire(&control_->abort.stop));
    if (stop != Stop::none && (waiter.obey_stop || stop == Stop::peer_lost)) {
      // After the barrier, the others may already have stopped the world. The barrier has succeeded all the
      // same.
      if (waiter.met()) return;
      throw_stopped();
    }
    if (const std::string why = waiter.doubted(); !why.empty()) {
      raise(Stop::deadlock, waiter.rank, why);
      throw_stopped();
    }
    if (hopeless) {
      throw RunError(RunError::Reason::peer_lost,
                     fmt::format("{} of rank {} cannot end: {} left the world", what, waiter.rank,
                                 missing(waiter.number, waiter.wanted, true)));
    }
    if (options_.timeout.count() > 0 && Clock::now() - start > options_.timeout) {
      const std::string why = fmt::format("rank {} waited {} in {} for {}; {}", waiter.rank,
                                          system::seconds_text(options_.timeout), what,
                                          missing(waiter.number, waiter.wanted, false), system::more_time);
      // This is the last check, because a rank that arrived in time counts.
      if (waiter.met()) return;
      raise(Stop::timed_out, waiter.rank, why);
      if (waiter.obey_stop) throw_stopped();
      throw RunError(RunError::Reason::timed_out, why);
    }
    if (looks < 64) {
      sched_yield();
    } else {
      check_peers();
      sleep_on(control_->bell, seen, check_interval);
    }
  }
}

void Group::require_own_process() {
  if (!forked()) return;
  throw UsageError(fmt::format(
      "this process (pid {}) is a fork of {}, which alone takes part in the world: a fork must join or make "
      "another world",
      getpid(), local_ ? "the one that all ranks live in" : "that of " + process_text(rank_)));
}

void Group::check() {
  require_own_process();
  if (load_acquire(&control_->abort.stop) != 0) throw_stopped();
}

void Group::throw_stopped() {
  // A rank that cannot join also ends its connections, but that is not the cause.
  if (joining_ && control_->refusal.stands()) control_->refusal.throw_it();
  const Stop stop = Stop(load_acquire(&control_->abort.stop));
  const int rank = int(control_->abort.rank);
  const std::string why = control_->why_ready.load(std::memory_order_acquire) ? control_->why : "";
  switch (stop) {
    case Stop::timed_out:
      throw RunError(
          RunError::Reason::timed_out,
          "timed out: " + (why.empty()
                               ? fmt::format("{}{}a wait of rank {} reached its deadline; {}",
                                             different_text(rank), behind_text(rank), rank, system::more_time)
                               : why));
    case Stop::deadlock:
      throw RunError(RunError::Reason::deadlock,
                     "deadlock: " + (why.empty() ? fmt::format("seen by rank {}", rank) : why));
    case Stop::peer_lost:
      throw RunError(RunError::Reason::peer_lost,
                     (why.empty() ? fmt::format("rank {} died", rank) : why) +
                         (joining_         ? " while the world was being joined"
                          : several_hosts_ ? "; the other ranks can join a new world under another address"
                                           : "; the others can go on in World::survivors()"));
    default:
      throw RunError(RunError::Reason::aborted,
                     fmt::format("aborted by rank {}: {}", rank, why.empty() ? "no reason given" : why));
  }
}

bool Group::raise(Stop stop, int rank, const std::string& why) {
  std::string text = why;
  if (stop == Stop::deadlock || stop == Stop::timed_out) {
    if (const std::string more = doubted(); !more.empty() && more != why) text = more + "; " + why;
  }
  // A wait in a launch does not know which ranks have left or have not launched. It may wait for one of
  // these.
  if (stop == Stop::timed_out && control_->leavers.load(std::memory_order_acquire) != 0)
    text = left_text() + " left the world; " + text;
  if (stop == Stop::timed_out) text = behind_text(rank) + text;
  if (stop == Stop::timed_out || stop == Stop::deadlock) text = different_text(rank) + text;
  return raise_as_said(stop, rank, text);
}

bool Group::raise_as_said(Stop stop, int rank, const std::string& text) {
  if (forked()) return false;
  AbortWord& word = control_->abort;
  const auto start = Clock::now();
  for (uint32_t unclaimed = 0;
       !std::atomic_ref(word.claimed).compare_exchange_strong(unclaimed, 1, std::memory_order_acquire);
       unclaimed = 0) {
    // The other rank is about to write why, or a reset is about to allow the next stop. If that rank died
    // meanwhile, no rank may hang.
    if (Clock::now() - start > stop_patience) store_release(&word.stop, uint32_t(stop));
    if (load_acquire(&word.stop) != 0) return false;
    sched_yield();
  }
  const size_t length = std::min(text.size(), Control::why_bytes - 1);
  std::memcpy(control_->why, text.data(), length);
  control_->why[length] = 0;
  control_->why_ready.store(1, std::memory_order_release);
  store_relaxed(&word.rank, uint32_t(rank));
  store_release(&word.stop, uint32_t(stop));
  ring();
  return true;
}

void Group::leave(int rank) {
  control_->seats()[rank].presence.store(Presence::left, std::memory_order_release);
  control_->leavers.fetch_add(1, std::memory_order_acq_rel);
  if (local_) scheduler_->end_rank(rank);
  ring();
}

void Group::show(int rank, std::shared_ptr<const void> what) {
  const std::lock_guard lock(shown_mutex_);
  shown_[size_t(rank)].swap(what);
}

std::shared_ptr<const void> Group::shown(int rank) {
  const std::lock_guard lock(shown_mutex_);
  return shown_[size_t(rank)];
}

std::vector<int> Group::former_ranks() const {
  std::vector<int> former;
  for (int rank = 0; control_->offered_in != 0 && rank < ranks(); ++rank)
    former.push_back(int(control_->seats()[rank].former_rank));
  return former;
}

void Group::check_peers() {
  if (local_) return;
  const int64_t now = Clock::now().time_since_epoch().count();
  int64_t next = next_check_ns_.load(std::memory_order_relaxed);
  if (now < next ||
      !next_check_ns_.compare_exchange_strong(next, now + std::chrono::nanoseconds(check_interval).count())) {
    return;
  }
  for (const int peer : watch_.dead()) {
    if (control_->seats()[peer].presence.load(std::memory_order_acquire) == Presence::left) continue;
    raise(Stop::peer_lost, peer, fmt::format("{} died", process_text(peer)));
    return;
  }
}

void Group::look_for_dead() {
  if (local_) return;
  wait_for_ending_peers();
  next_check_ns_.store(0, std::memory_order_relaxed);
  check_peers();
}

void Group::wait_for_ending_peers() const {
  // Some kernels do not tell which processes have begun to end, so wait a moment first.
  std::this_thread::sleep_for(check_interval);
  watch_.wait_for_ending(options_.timeout.count() > 0 ? options_.timeout : std::chrono::seconds(30));
}

std::string Group::host_text(int rank) const {
  const size_t of = host(rank);
  return of < host_names_.size() ? fmt::format("host {} ({})", of, host_names_[of])
                                 : fmt::format("host {}", of);
}

void Group::require_one_host(const std::string& what) const {
  if (!several_hosts_) return;
  int other = 1;
  while (host(other) == host(0)) ++other;
  throw UsageError(
      fmt::format("{}: rank 0 is on {} and rank {} on {}, which share no memory; between hosts, only "
                  "plans with port channels run, with an Executor",
                  what, host_text(0), other, host_text(other)));
}

std::string Group::process_text(int rank) {
  if (control_->seats()[rank].process.pid == 0) return fmt::format("rank {} ({})", rank, host_text(rank));
  return fmt::format("rank {} (pid {})", rank, control_->seats()[rank].process.pid);
}

std::string Group::behind_text(int rank) {
  const Launched mine = Launched::of(launches(rank).load(std::memory_order_relaxed));
  if (mine.executor == 0) return "";
  std::map<uint32_t, std::vector<int>> behind;  // ranks by the number of their launched calls
  for (int peer = 0; peer < ranks(); ++peer) {
    Launched seen = Launched::of(launches(peer).load(std::memory_order_relaxed));
    if (seen.executor == 0) seen = {mine.executor, mine.resets, 0};  // the rank has bound but not launched
    if (seen.counts_with(mine) && int32_t(seen.count - mine.count) < 0) behind[seen.count].push_back(peer);
  }
  std::string text;
  for (const auto& [count, peers] : behind) {
    text += text.empty() ? fmt::format("{} {} launched {} calls", system::ranks_text(peers),
                                       peers.size() == 1 ? "has" : "have", count)
                         : fmt::format(", {} {}", system::ranks_text(peers), count);
  }
  return text.empty() ? "" : fmt::format("{}, and rank {} {}; ", text, rank, mine.count);
}

std::string Group::different_text(int rank) {
  const Launched mine = Launched::of(launches(rank).load(std::memory_order_acquire));
  if (mine.executor == 0) return "";
  const uint64_t call = last_call(rank).load(std::memory_order_relaxed);
  for (int peer = 0; peer < ranks(); ++peer) {
    const Launched seen = Launched::of(launches(peer).load(std::memory_order_acquire));
    if (!seen.counts_with(mine) || seen.count != mine.count) continue;
    if (last_call(peer).load(std::memory_order_relaxed) == call) continue;
    return fmt::format(
        "ranks {} and {} have launched different calls, each its call {} of one executor: plan, bytes, "
        "dtype, op and packet form have to be the same on all ranks; ",
        std::min(rank, peer), std::max(rank, peer), mine.count);
  }
  return "";
}

std::string Group::left_text() {
  std::vector<int> left;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (control_->seats()[peer].presence.load(std::memory_order_acquire) == Presence::left)
      left.push_back(peer);
  }
  return system::ranks_text(left);
}

std::string Group::missing(std::atomic<uint64_t> Seat::*number, uint64_t wanted, bool only_left) {
  std::vector<int> absent;
  for (int peer = 0; peer < ranks(); ++peer) {
    Seat& seat = control_->seats()[peer];
    if ((seat.*number).load() < wanted && (!only_left || seat.presence.load() == Presence::left))
      absent.push_back(peer);
  }
  return system::ranks_text(absent);
}

void Group::ring() {
  control_->bell.fetch_add(1, std::memory_order_acq_rel);
  wake_all(control_->bell);
}

void sleep_on(std::atomic<uint32_t>& bell, uint32_t seen, std::chrono::nanoseconds limit) {
  const timespec time{.tv_sec = time_t(limit.count() / 1000000000),
                      .tv_nsec = long(limit.count() % 1000000000)};
  syscall(SYS_futex, &bell, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& bell) {
  syscall(SYS_futex, &bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace chorale::world
