#include "shrink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "chorale/error.hpp"
#include "control.hpp"
#include "executor/system/shared_memory.hpp"
#include "executor/system/texts.hpp"
#include "executor/system/thrown.hpp"
#include "group.hpp"
#include "process.hpp"
#include "steps.hpp"

namespace chorale::world {

/// Runs one rank's part of a shrink.
///
/// A living rank is left out only by the list of the call. When every other rank has called survivors() with
/// the same list, died or left, the lowest rank that has called it offers the memory of the next world. The
/// memory lists the ranks of the next world before any rank sees it. A rank that has opened the memory marks
/// itself as ready. The offer becomes the next world when all ranks in it are ready or dead. Only the
/// offering rank makes that change, so another rank takes over only after it has seen the offering rank dead.
/// A rank that gives up makes the attempt fail by a change of the same word. So either all ranks that made
/// the call get the world, or none does.
///
/// Ranks with different lists share the word. An attempt waits for nobody once it is offered, so those with
/// another list wait until it has ended. They do so without an order, so no two calls can block each other.
/// See docs/decisions/0013-survivors-agree-by-one-word.md.
class Shrink {
 public:
  Shrink(Group& old, int rank, std::span<const int> without)
      : old_(old),
        control_(*old.control_),
        rank_(rank),
        dead_(size_t(old.ranks())),
        out_(size_t(old.ranks())) {
    for (const int out : without) out_[size_t(out)] = true;
    list_ = hash_of(out_);
    ++old_.in_shrink_;
  }
  ~Shrink() {
    mine().came.store(0);
    --old_.in_shrink_;
  }
  Shrink(const Shrink&) = delete;

  Place run();

 private:
  using Clock = std::chrono::steady_clock;
  using Phase = Attempt::Phase;

  Attempt current() const { return Attempt::of(control_.attempt.load()); }
  Seat& seat(int rank) const { return control_.seats()[rank]; }
  Seat& mine() const { return seat(rank_); }
  /// Identifies this rank's part in the attempt: the attempt's number plus 1, and the list of ranks that the
  /// call leaves out.
  uint64_t call() const { return uint64_t(number_ + 1) << 32 | list_; }
  bool has_come(int rank) const { return seat(rank).came.load() == call(); }
  /// Returns whether a rank with the list of this one has offered, made or failed the attempt.
  bool is_own(const Attempt& now) const { return now.number == number_ && has_come(int(now.rank)); }
  bool ended(int rank) const { return dead_[size_t(rank)] || seat(rank).presence.load() == Presence::left; }
  bool gone(int rank) const { return out_[size_t(rank)] || ended(rank); }

  static uint32_t hash_of(const std::vector<bool>& out);
  void come();
  bool advance(Attempt from, Attempt to);
  bool has_made() const;
  Place take(const Attempt& now);
  void throw_if_failed() const;
  void step_beside(const Attempt& now);
  void step(const Attempt& now);
  void gather(const Attempt& now);
  void offer(const Attempt& now);
  std::shared_ptr<Group> make_local(const std::vector<int>& members) const;
  void accept(const Attempt& now);
  Place open_offered(const Attempt& now) const;
  void confirm(const Attempt& now);
  void give_up(const Attempt& now, RunError::Reason reason, const std::string& why);

  void look_for_dead();
  std::vector<int> missing(const Attempt& now) const;
  std::string with_other_lists(const std::vector<int>& ranks) const;
  void check_deadline(const Attempt& now);
  void pause(uint32_t seen);

  Group& old_;
  Control& control_;
  const int rank_;
  uint32_t number_ = 0;     ///< the number of the attempt
  std::vector<bool> dead_;  ///< by rank: whether its process has ended
  std::vector<bool> out_;   ///< by rank: whether the call leaves it out
  uint32_t list_ = 0;       ///< a hash of the ranks that the call leaves out
  bool starved_ = false;    ///< in a seeded world: no other rank can run
  Clock::time_point start_ = Clock::now();

  system::Descriptor offered_;    ///< the memory that this rank offers
  std::optional<Attempt> ready_;  ///< the offer that `next_` comes from
  Place next_;
};

Place Shrink::run() {
  come();
  at_step(CollectiveStep::survivors);
  for (;;) {
    const uint32_t seen = control_.bell.load(std::memory_order_acquire);
    const Attempt now = current();
    if (now.number == number_ && now.phase == Phase::made && is_own(now)) return take(now);
    if (now.number != number_ || now.phase == Phase::failed) {
      if (has_made()) return take(now);
      throw_if_failed();
      // Ranks with another list made or failed it, so this one takes part in the next attempt.
      come();
      continue;
    }
    try {
      step(now);
    } catch (const RunError& error) {
      give_up(now, error.reason, fmt::format("rank {}: {}", rank_, error.what()));
    } catch (const std::bad_alloc&) {
      give_up(now, RunError::Reason::resources, fmt::format("rank {}: out of memory", rank_));
    } catch (...) {
      give_up(now, RunError::Reason::other, fmt::format("rank {}: {}", rank_, system::thrown_text()));
    }
    if (current() != now) continue;
    check_deadline(now);
    pause(seen);
  }
}

/// Returns the hash of a list by FNV-1a.
uint32_t Shrink::hash_of(const std::vector<bool>& out) {
  uint32_t hash = 0x811c9dc5;
  for (size_t rank = 0; rank < out.size(); ++rank) {
    if (!out[rank]) continue;
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (uint32_t(rank) >> shift & 0xff)) * 0x1000193;
  }
  return hash;
}

/// Joins the current attempt, or the next one.
void Shrink::come() {
  next_ = {};
  ready_.reset();
  for (;;) {
    const Attempt now = current();
    if (now.phase == Phase::failed) {
      advance(now, {now.number + 1, Phase::open, 0});
      continue;
    }
    number_ = now.number;
    mine().came.store(call());
    const Attempt then = current();
    if (then.number != number_ || then.phase == Phase::failed) continue;  // it ended before
    old_.ring();
    return;
  }
}

/// Returns whether the offer that this rank has opened became the next world.
bool Shrink::has_made() const { return ready_ && next_.group->control_->made.load() != 0; }

/// Ends this rank's part in an attempt that has made its world. A rank that looks later sees only the next
/// attempt in the word, so the world itself says that it was made.
Place Shrink::take(const Attempt& now) {
  if (!ready_) {
    throw RunError(RunError::Reason::peer_lost,
                   "the other ranks consider this rank dead, and go on without it");
  }
  next_.group->control_->made.store(1);
  if (now.number == number_ && now.phase == Phase::made) advance(now, {number_ + 1, Phase::open, 0});
  if (old_.local() && int(ready_->rank) == rank_) {
    const std::lock_guard lock(old_.next_mutex_);
    old_.next_[size_t(rank_)].reset();  // all ranks have it
  }
  return std::move(next_);
}

bool Shrink::advance(Attempt from, Attempt to) {
  uint64_t expected = from.word();
  if (!control_.attempt.compare_exchange_strong(expected, to.word())) return false;
  old_.ring();
  return true;
}

void Shrink::step(const Attempt& now) {
  look_for_dead();
  if (now.phase == Phase::open) return gather(now);
  if (!is_own(now)) return step_beside(now);
  if (gone(int(now.rank))) return gather(now);
  if (ready_ != now) accept(now);
  if (int(now.rank) == rank_) confirm(now);
}

/// Waits for the end of an attempt of ranks with another list. If none of them is left, this rank ends it.
void Shrink::step_beside(const Attempt& now) {
  const uint64_t theirs = seat(int(now.rank)).came.load();
  for (int rank = 0; rank < old_.ranks(); ++rank) {
    if (!ended(rank) && seat(rank).came.load() == theirs) return;
  }
  advance(now, {now.number + 1, Phase::open, 0});
}

/// Makes the lowest living rank offer the memory, when no rank has offered it or the offering rank has died.
/// It waits until all living ranks have come. Only one rank sees all lower ranks gone.
void Shrink::gather(const Attempt& now) {
  for (int rank = 0; rank < old_.ranks(); ++rank) {
    if (gone(rank)) continue;
    if (!has_come(rank)) return;
  }
  int first = 0;
  while (gone(first)) ++first;
  if (first == rank_) offer(now);
}

void Shrink::offer(const Attempt& now) {
  std::vector<int> members;
  for (int rank = 0; rank < old_.ranks(); ++rank) {
    if (!gone(rank)) members.push_back(rank);
  }
  const Attempt offered{number_, Phase::offered, uint32_t(rank_)};
  if (old_.local()) {
    std::shared_ptr<Group> next = make_local(members);
    next->control_->offered_in = offered.word();
    const std::lock_guard lock(old_.next_mutex_);
    old_.next_[size_t(rank_)] = std::move(next);
  } else {
    offered_ = old_.make_control(rank_, members, offered.word());
    mine().offer.store(uint64_t(offered_.get()));
  }
  if (advance(now, offered)) start_ = Clock::now();
}

std::shared_ptr<Group> Shrink::make_local(const std::vector<int>& members) const {
  return std::make_shared<Group>(int(members.size()), old_.options_, &old_, members);
}

void Shrink::accept(const Attempt& now) {
  start_ = Clock::now();
  next_ = {};
  ready_.reset();
  try {
    next_ = open_offered(now);
  } catch (const RunError&) {
    // If the offering rank has died, another rank takes over.
    old_.wait_for_ending_peers();
    look_for_dead();
    if (gone(int(now.rank)) || current() != now) return;
    throw;
  }
  ready_ = now;
  mine().ready.store(now.word());
  old_.ring();
}

Place Shrink::open_offered(const Attempt& now) const {
  Place place;
  system::Mapping mapping;
  if (old_.local()) {
    const std::lock_guard lock(old_.next_mutex_);
    place.group = old_.next_[now.rank];
  } else {
    const Seat& from = seat(int(now.rank));
    system::Descriptor opened;
    if (int(now.rank) != rank_) opened = system::open_of_peer(from.process.pid, int(from.offer.load()));
    const system::Descriptor& memory = int(now.rank) == rank_ ? offered_ : opened;
    const uint64_t bytes = system::size_of(memory);
    if (bytes >= sizeof(Control)) mapping = system::Mapping(memory, bytes);
  }
  Control* const next = place.group ? place.group->control_ : reinterpret_cast<Control*>(mapping.data());
  if (!next || next->offered_in != now.word()) {
    throw RunError(
        RunError::Reason::mismatch,
        fmt::format("the memory that rank {} offers for the next world is not valid; are the ranks in "
                    "different process namespaces?",
                    now.rank));
  }
  for (int rank = 0; rank < int(next->ranks); ++rank) {
    if (int(next->seats()[rank].former_rank) == rank_) place.rank = rank;
  }
  if (place.rank < 0)
    throw RunError(RunError::Reason::peer_lost,
                   "the other ranks consider this rank dead, and go on without it");
  if (!place.group) place.group = std::make_shared<Group>(std::move(mapping), place.rank, old_.options_);
  return place;
}

/// Makes the offer the next world when all living ranks are ready. The offering rank calls it.
void Shrink::confirm(const Attempt& now) {
  if (!missing(now).empty()) return;
  advance(now, {number_, Phase::made, uint32_t(rank_)});
}

/// Makes the attempt fail. It has no effect if the attempt has already reached another phase. If the attempt
/// belongs to ranks with another list, they begin again in the next attempt. If these have already made their
/// world, only this rank gives up.
void Shrink::give_up(const Attempt& now, RunError::Reason reason, const std::string& why) {
  if (now.phase == Phase::made) throw RunError(reason, why);
  Failure& failure = mine().failure;
  failure.call.store(0);
  failure.reason = uint32_t(reason);
  const size_t length = std::min(why.size(), sizeof failure.text - 1);
  std::memcpy(failure.text, why.data(), length);
  failure.text[length] = 0;
  failure.call.store(call());
  if (!advance(now, {number_, Phase::failed, uint32_t(rank_)})) failure.call.store(0);
}

/// Throws the reason why a rank with the same list has given up this attempt, if one has.
void Shrink::throw_if_failed() const {
  for (int rank = 0; rank < old_.ranks(); ++rank) {
    const Failure& failure = seat(rank).failure;
    if (failure.call.load() != call()) continue;
    const std::string text(failure.text, strnlen(failure.text, sizeof failure.text - 1));
    const auto reason = RunError::Reason(failure.reason);
    if (failure.call.load() == call()) throw RunError(reason, text);
  }
}

void Shrink::look_for_dead() {
  if (old_.local()) return;
  for (const int rank : old_.watch_.dead()) dead_[size_t(rank)] = true;
}

/// Returns the living ranks for which the attempt waits.
std::vector<int> Shrink::missing(const Attempt& now) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < old_.ranks(); ++rank) {
    if (gone(rank)) continue;
    const bool offered = now.phase == Phase::offered && is_own(now);
    const bool here = offered ? seat(rank).ready.load() == now.word() : has_come(rank);
    if (!here) ranks.push_back(rank);
  }
  return ranks;
}

void Shrink::check_deadline(const Attempt& now) {
  const std::chrono::nanoseconds timeout = old_.timeout();
  const bool late = timeout.count() > 0 && Clock::now() - start_ > timeout;
  if (!late && !starved_) return;
  std::vector<int> ranks = missing(now);
  if (ranks.empty()) ranks.push_back(int(now.rank));  // only the offering rank's last step is missing
  const std::string whom = system::ranks_text(ranks), others = with_other_lists(ranks);
  if (starved_) {
    give_up(
        now, RunError::Reason::deadlock,
        fmt::format("deadlock: rank {} waits in survivors() for {}, and every rank waits for another: all "
                    "ranks that are left have to call it{}",
                    rank_, whom, others));
    return;
  }
  give_up(now, RunError::Reason::timed_out,
          fmt::format("timed out: rank {} waited {} in survivors() for {}: all ranks that are left have to "
                      "call it, and {}{}; {}",
                      rank_, system::seconds_text(timeout), whom,
                      ranks.size() == 1 ? "that one lives" : "those live", others, system::more_time));
}

/// Returns text like "; rank 2 leaves out other ranks than rank 0" for those of `ranks` that are in
/// survivors() with another list.
std::string Shrink::with_other_lists(const std::vector<int>& ranks) const {
  std::vector<int> others;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(others), [this](int rank) {
    const uint64_t came = seat(rank).came.load();
    return came != 0 && uint32_t(came) != list_;
  });
  if (others.empty()) return "";
  return fmt::format("; {} {} out other ranks than rank {}", system::ranks_text(others),
                     others.size() == 1 ? "leaves" : "leave", rank_);
}

void Shrink::pause(uint32_t seen) {
  fibers::Scheduler& scheduler = old_.scheduler();
  if (!scheduler.seeded()) {
    old_.check_peers();
    sleep_on(control_.bell, seen, check_interval);
    return;
  }
  struct Rung {
    const std::atomic<uint32_t>& bell;
    uint32_t seen;
  } const rung{control_.bell, seen};
  starved_ = !scheduler.wait(
      [](const void* of) {
        const Rung& one = *static_cast<const Rung*>(of);
        return one.bell.load(std::memory_order_acquire) != one.seen;
      },
      &rung, false);
}

Place next_of(Group& old, int rank, std::span<const int> without) {
  old.scheduler().check_caller();
  return Shrink(old, rank, without).run();
}

}  // namespace chorale::world
