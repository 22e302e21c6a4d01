#include "scheduler_threaded.hpp"

#include <sched.h>

#include <thread>
#include <utility>

namespace chorale::fibers {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

void pause_briefly() {
#if defined(__x86_64__)
  for (int times = 0; times < 8; ++times) __builtin_ia32_pause();
#endif
}

size_t seats_for(const Scheduler::Options& options) {
  const unsigned workers = options.workers ? options.workers : std::thread::hardware_concurrency();
  return std::max(1u, std::min(workers, options.complete ? unsigned(options.ranks) : workers));
}

}  // namespace

ThreadedScheduler::ThreadedScheduler(Scheduler::Options options)
    : SchedulerImpl(std::move(options)), seats_(seats_for(options_)) {
  for (Seat& seat : seats_) {
    seat.entries.reserve(1024);  // lists seldom grow in a launch
    seat.inbox.reserve(1024);
  }
}

LaunchResult ThreadedScheduler::run_blocks(int rank, int blocks, const Body& body, const Describe& describe) {
  if (stopped() != Stop::none) return {stopped(), {}};
  if (blocks == 0) return {};
  Call call;
  call.rank = rank;
  call.body = &body;
  call.describe = &describe;
  call.remaining = blocks;
  start_clock(call);

  std::unique_lock guard(mutex_);
  // Take the seat that the rank's blocks had the last time, if it is free, or any other free one. If none is
  // free, the blocks go to the usual seat and the caller sleeps.
  Seat* const usual = &seats_[size_t(rank) % seats_.size()];
  Seat* seat = usual->owner ? nullptr : usual;
  for (Seat& other : seats_) {
    if (!seat && !other.owner) seat = &other;
  }
  Seat& to = seat ? *seat : *usual;
  try {
    make_room(to, size_t(blocks));
  } catch (const std::exception& error) {
    guard.unlock();
    cannot_launch(rank, blocks, error);
    throw;
  }
  calls_.push_back(&call);
  if (seat) {
    seat->owner = &call;
    call.seat = seat;
  } else {
    sleepers_.push_back(&call);
  }
  for (int block = 0; block < blocks; ++block) {
    std::unique_ptr<BlockTask> task = pool_.take();
    task->begin(call, block);
    post(to, std::move(task));
  }
  ring(to);
  if (active_.load(std::memory_order_relaxed) == 0) {
    for (Seat& other : seats_) other.rung.notify_one();
  }
  launched_.fetch_add(1, std::memory_order_acq_rel);

  while (!call.done || call.seat) {
    if (!call.seat) {
      call.woken.wait(guard);
    } else {
      guard.unlock();
      work(call);
      guard.lock();
    }
  }
  launched_.fetch_sub(1, std::memory_order_acq_rel);
  calls_.erase(std::find(calls_.begin(), calls_.end(), &call));
  std::erase(sleepers_, &call);

  LaunchResult result{stopped(), {}};
  if (result.stop != Stop::none) {
    // Every block of every rank is recorded before it sees the stop. Wait until the other workers have done
    // so; they do it before they run anything else.
    recorded_.wait(guard, [&] {
      return std::all_of(seats_.begin(), seats_.end(),
                         [](const Seat& one) { return !one.owner || one.recorded; });
    });
    result.stuck = stuck_;
    sort_by_rank(result.stuck);
  }
  guard.unlock();
  if (call.error) std::rethrow_exception(call.error);
  return result;
}

/// Does every step of a launch that may fail, before other threads see any of it. Called under mutex_.
void ThreadedScheduler::make_room(Seat& seat, size_t blocks) {
  pool_.reserve(blocks, *this);
  seat.inbox.reserve(seat.inbox.size() + blocks);
  calls_.reserve(calls_.size() + 1);
  sleepers_.reserve(sleepers_.size() + 1);
}

void ThreadedScheduler::end_rank(int) { ended_ranks_.fetch_add(1, std::memory_order_acq_rel); }

void ThreadedScheduler::rearm() {
  std::lock_guard guard(mutex_);
  stuck_.clear();
  for (Seat& seat : seats_) seat.recorded = false;
}

/// Runs the blocks of the caller's seat until its own launch has ended.
void ThreadedScheduler::work(Call& call) {
  Seat& seat = *call.seat;
  std::unique_lock guard(seat.lock);
  bool told = false;
  unsigned idle_times = 0;
  active_.fetch_add(1, std::memory_order_acq_rel);
  for (uint64_t rounds = 1; call.remaining.load(std::memory_order_acquire) != 0; ++rounds) {
    if (seat.mail.load(std::memory_order_acquire)) collect(seat);
    if (!told && stopped() != Stop::none) {
      record(seat);
      told = true;
    }
    if (round(seat, call)) {
      if (idle_times) active_.fetch_add(1, std::memory_order_acq_rel);
      idle_times = 0;
      if (rounds % 1024 == 0) check_deadlines(&seat);
      if (hungry_.load(std::memory_order_relaxed)) share(seat);
    } else {
      if (seat.entries.empty()) hungry_.store(&seat, std::memory_order_relaxed);
      guard.unlock();  // lets find_deadlock() in another thread take the seat
      idle(seat, call, ++idle_times);
      guard.lock();
    }
  }
  if (!told && stopped() != Stop::none) record(seat);
  if (!idle_times) active_.fetch_sub(1, std::memory_order_acq_rel);
  leave_seat(call);
}

/// Runs each block that can run once. Returns false if none could.
bool ThreadedScheduler::round(Seat& seat, const Call& call) {
  const bool stopping = stopped() != Stop::none;
  bool ran = false;
  for (size_t at = 0; at < seat.entries.size();) {
    Entry& entry = seat.entries[at];
    if (entry.ready && !stopping && !entry.ready(entry.state)) {
      ++at;
      continue;
    }
    ran = true;
    if (!entry.task->resume()) {
      entry.ready = entry.task->ready;
      entry.state = entry.task->state;
      ++at;
      continue;
    }
    std::unique_ptr<BlockTask> ended = std::move(entry.task);
    if (at + 1 != seat.entries.size()) entry = std::move(seat.entries.back());
    seat.entries.pop_back();
    end(std::move(ended), call);
    if (call.remaining.load(std::memory_order_relaxed) == 0) return true;
  }
  return ran;
}

/// Puts a block's fiber back, and wakes its caller if this was the last block.
void ThreadedScheduler::end(std::unique_ptr<BlockTask> task, const Call& by) {
  Call& call = static_cast<Call&>(task->launch());
  std::lock_guard guard(mutex_);
  pool_.give(std::move(task));
  if (call.remaining.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  call.done = true;
  // Notify under the mutex: the caller destroys the call as soon as it wakes.
  if (&call != &by) (call.seat ? call.seat->rung : call.woken).notify_one();
}

/// Puts a block into a seat's inbox. Called under mutex_; call ring() after it. A launch must not allocate,
/// so tasks go one by one into lists that stay.
void ThreadedScheduler::post(Seat& seat, std::unique_ptr<BlockTask> task) {
  if (seat.recorded) report(*task);
  seat.inbox.push_back(std::move(task));
}

/// Tells a seat's worker that its inbox has blocks. Called under mutex_.
void ThreadedScheduler::ring(Seat& seat) {
  seat.mail.store(true, std::memory_order_release);
  seat.rung.notify_one();
}

/// Moves the blocks of the inbox to the seat's entries. Called under the seat's lock.
void ThreadedScheduler::collect(Seat& seat) {
  std::lock_guard guard(mutex_);
  for (auto& task : seat.inbox) {
    const Ready ready = task->ready;
    const void* const state = task->state;
    seat.entries.push_back({ready, state, std::move(task)});
  }
  seat.inbox.clear();
  seat.mail.store(false, std::memory_order_relaxed);
}

/// Gives half of the blocks to a worker that has none. Called under the seat's lock.
void ThreadedScheduler::share(Seat& seat) {
  if (seat.entries.size() < 2 || stopped() != Stop::none) return;
  Seat* const to = hungry_.exchange(nullptr, std::memory_order_acq_rel);
  if (!to || to == &seat) return;
  std::lock_guard guard(mutex_);
  if (!to->owner || !to->inbox.empty()) return;
  for (size_t more = seat.entries.size() / 2; more > 0; --more) {
    post(*to, std::move(seat.entries.back().task));
    seat.entries.pop_back();
  }
  ring(*to);
}

/// Hands the seat to another caller. Called under the seat's lock.
void ThreadedScheduler::leave_seat(Call& call) {
  std::lock_guard guard(mutex_);
  Seat& seat = *call.seat;
  call.seat = nullptr;
  seat.owner = nullptr;
  recorded_.notify_all();
  while (!sleepers_.empty()) {
    Call* const next = sleepers_.front();
    sleepers_.erase(sleepers_.begin());
    if (next->done) continue;
    seat.owner = next;
    next->seat = &seat;
    next->woken.notify_one();
    return;
  }
  // No caller sleeps, so the remaining blocks belong to callers that work. Put them into the inbox of one.
  if (seat.inbox.empty() && seat.entries.empty()) return;
  for (Seat& other : seats_) {
    if (!other.owner) continue;
    for (auto& task : seat.inbox) post(other, std::move(task));
    for (Entry& entry : seat.entries) post(other, std::move(entry.task));
    ring(other);
    break;
  }
  seat.inbox.clear();
  seat.entries.clear();
  seat.mail.store(false, std::memory_order_relaxed);
}

/// Passes a moment in which no block of the seat could run.
/// \param times the number of such moments in a row
void ThreadedScheduler::idle(Seat& seat, Call& call, unsigned times) {
  if (times == 1) active_.fetch_sub(1, std::memory_order_acq_rel);
  // While a worker is active, there is no deadlock to find, and the search would take the seats of workers
  // that are about to run.
  if ((times == 2 || times % 16 == 0) && active_.load(std::memory_order_acquire) == 0 && may_be_stuck()) {
    find_deadlock();
  }
  // In a complete world with all workers idle, only a new launch can help, and it rings. Spinning would take
  // the core from the thread that launches. Otherwise a peer is working on another core.
  const bool hopeful = !options_.complete || active_.load(std::memory_order_relaxed) != 0;
  if (times < 16 && hopeful) return pause_briefly();
  if (times < (options_.complete ? 64u : 256u) && (hopeful || times < 3)) {
    sched_yield();
    return;
  }
  if (times % 16 == 0) check_deadlines(nullptr);
  if (options_.idle_check && times % 128 == 0) options_.idle_check();
  std::unique_lock guard(mutex_);
  seat.rung.wait_for(guard, microseconds(times < 1024 ? 50 : 100), [&] {
    return seat.mail.load(std::memory_order_relaxed) || call.remaining.load(std::memory_order_relaxed) == 0 ||
           (!hopeful && active_.load(std::memory_order_relaxed) != 0);
  });
}

/// Stops the world if a launch is late. Called under the lock of `held`, if any.
void ThreadedScheduler::check_deadlines(Seat* held) {
  {
    std::lock_guard guard(mutex_);
    bool any = false;
    for (Call* const call : calls_) any |= overdue(*call);
    if (!any || stopped() != Stop::none) return;
  }
  // Look before the stop, because a caller that sees the stop asks at once where the blocks are. Take the
  // seats' locks before mutex_.
  std::vector<Stuck> seen = look(held);
  std::lock_guard guard(mutex_);
  const auto found = std::find_if(calls_.begin(), calls_.end(), [this](Call* call) { return late(*call); });
  if (found != calls_.end()) time_out((*found)->rank, std::move(seen));
}

/// Returns the unfinished blocks, except those of workers that have been running one for long.
std::vector<Stuck> ThreadedScheduler::look(Seat* held) {
  std::vector<Stuck> seen;
  for (Seat& seat : seats_) {
    std::unique_lock lock(seat.lock, std::defer_lock);
    if (&seat != held) {
      for (int times = 0; times < 1000 && !lock.try_lock(); ++times) sched_yield();
      if (!lock) continue;
    }
    std::lock_guard guard(mutex_);
    look(seat, seen);
  }
  return seen;
}

/// Adds the unfinished blocks of one seat. Called under the seat's lock and mutex_.
void ThreadedScheduler::look(const Seat& seat, std::vector<Stuck>& seen) const {
  const auto add = [&seen](const BlockTask& task) {
    task.look();
    seen.push_back(task.report());
  };
  for (const Entry& entry : seat.entries) add(*entry.task);
  for (const auto& task : seat.inbox) add(*task);
}

/// Records the seat's blocks before they see the stop. Called under the seat's lock.
void ThreadedScheduler::record(Seat& seat) {
  std::lock_guard guard(mutex_);
  if (seat.recorded) return;
  seat.recorded = true;
  for (const Entry& entry : seat.entries) report(*entry.task);
  for (const auto& task : seat.inbox) report(*task);
  recorded_.notify_all();
}

/// Records a block once, although it may change seats meanwhile. Called under mutex_.
void ThreadedScheduler::report(BlockTask& task) {
  if (std::exchange(task.reported, true)) return;
  stuck_.push_back(task.report());
}

/// Returns true if find_deadlock() may find a deadlock. This check is cheap.
bool ThreadedScheduler::may_be_stuck() const {
  if (!options_.complete || busy_.load(std::memory_order_acquire) != 0) return false;
  const int in_collective = options_.ranks_in_collective ? options_.ranks_in_collective() : 0;
  return launched_.load(std::memory_order_acquire) + ended_ranks_.load(std::memory_order_acquire) +
             in_collective >=
         options_.ranks;
}

/// Stops the world if it finds a deadlock. No block runs while this thread holds every seat's lock. Suppose
/// that no block can run, that every rank is in a launch (or in a collective that waits for a rank in one),
/// and that nothing outside works. Then no memory changes any more, so the state is final.
void ThreadedScheduler::find_deadlock() {
  struct Locks {
    std::vector<Seat>& seats;
    size_t held = 0;
    ~Locks() {
      while (held != 0) seats[--held].lock.unlock();
    }
  } locks{seats_};
  for (Seat& seat : seats_) {
    if (!seat.lock.try_lock()) return;
    ++locks.held;
  }
  int rank = 0;
  std::vector<Stuck> seen;
  {
    std::lock_guard guard(mutex_);
    // Check this before looking at the blocks: an agent writes what they wait for before it stops being busy.
    if (calls_.empty() || stopped() != Stop::none || !may_be_stuck()) return;
    // A caller whose blocks have all ended is about to continue.
    if (std::any_of(calls_.begin(), calls_.end(), [](const Call* call) { return call->remaining == 0; }))
      return;
    for (const Seat& seat : seats_) {
      for (const Entry& entry : seat.entries) {
        if (entry.task->runnable(false)) return;
      }
      for (const auto& task : seat.inbox) {
        if (task->runnable(false)) return;
      }
    }
    rank = calls_.front()->rank;
    for (const Seat& seat : seats_) look(seat, seen);
  }
  deadlock(rank, "every block of every rank waits for another", std::move(seen));
  for (Seat& seat : seats_) record(seat);
}

std::unique_ptr<Scheduler> make_threaded(Scheduler::Options options) {
  return std::make_unique<ThreadedScheduler>(std::move(options));
}

}  // namespace chorale::fibers
