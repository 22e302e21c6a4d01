#include "scheduler.hpp"

#include <fmt/format.h>

#include "chorale/error.hpp"
#include "executor/system/texts.hpp"
#include "executor/system/thrown.hpp"
#include "report.hpp"
#include "scheduler_impl.hpp"

namespace chorale::fibers {

LaunchResult SchedulerImpl::launch(int rank, int blocks, const Body& body, const Describe& describe) {
  if (blocks < 0) throw UsageError(fmt::format("launch() got a negative number of blocks: {}", blocks));
  return run_blocks(rank, blocks, body, describe);
}

void SchedulerImpl::run_seeded(std::vector<std::function<void()>>) {
  throw UsageError("run_seeded() needs a scheduler with a seed");
}

bool SchedulerImpl::wait(Ready, const void*, bool) {
  throw UsageError("wait() needs a scheduler with a seed");
}

/// Returns the report lines for the blocks of all ranks of this process.
std::string SchedulerImpl::lines_of(const std::vector<Stuck>& seen) const {
  return describe(seen, options_.complete ? Ranks::all : Ranks::some);
}

void SchedulerImpl::time_out(int rank, std::vector<Stuck> seen) {
  sort_by_rank(seen);
  options_.raise(Stop::timed_out, rank,
                 fmt::format("a launch of rank {} has made no progress for {:.3g} s; {}{}", rank,
                             std::chrono::duration<double>(options_.timeout).count(), system::more_time,
                             lines_of(seen)));
}

void SchedulerImpl::deadlock(int rank, const std::string& why, std::vector<Stuck> seen) {
  sort_by_rank(seen);
  options_.raise(Stop::deadlock, rank, why + lines_of(seen));
}

void SchedulerImpl::cannot_launch(int rank, int blocks, const std::exception& error) {
  options_.raise(Stop::aborted, rank, fmt::format("a launch of {} blocks failed: {}", blocks, error.what()));
}

void SchedulerImpl::start_clock(Launch& launch) const {
  launch.deadline = system::deadline_after(options_.timeout);
  launch.moves_outside = moves_outside_.load(std::memory_order_relaxed);
  launch.asked.store(false, std::memory_order_relaxed);
  launch.spared = false;
}

bool SchedulerImpl::stands(const Launch& launch) const {
  return !launch.moved.load(std::memory_order_acquire) &&
         launch.moves_outside == moves_outside_.load(std::memory_order_acquire) &&
         launch.remaining.load(std::memory_order_acquire) != 0 && Clock::now() > launch.deadline;
}

bool SchedulerImpl::overdue(Launch& launch) const {
  // Read before writing, because another worker writes there.
  const bool moved =
      launch.moved.load(std::memory_order_relaxed) && launch.moved.exchange(false, std::memory_order_acq_rel);
  if (moved || launch.moves_outside != moves_outside_.load(std::memory_order_acquire)) start_clock(launch);
  launch.can_run = launch.waits = false;
  return stands(launch);
}

bool SchedulerImpl::late(Launch& launch) const {
  if (!stands(launch)) return false;
  if (!launch.waits && !launch.asked.load(std::memory_order_relaxed)) return false;
  if (!launch.can_run || launch.spared) return true;
  start_clock(launch);
  launch.spared = true;
  return false;
}

BlockTask::BlockTask(SchedulerImpl& scheduler) : Task(block_stack_bytes), scheduler_(scheduler) {}

void BlockTask::begin(Launch& launch, int block) {
  launch_ = &launch;
  block_ = block;
  ready = nullptr;
  reported = false;
  waiting_ = {};
}

void BlockTask::park(Ready until, const void* of) {
  park_until(until, of);
  moved();
}

void BlockTask::moved() {
  // Read before writing. Otherwise the blocks of a launch, on all workers, would write to the same cache
  // line.
  for (Launch* launch = launch_; launch; launch = launch->outer) {
    if (!launch->moved.load(std::memory_order_relaxed)) launch->moved.store(true, std::memory_order_release);
  }
}

Stop BlockTask::stopped() {
  if (!launch_->asked.load(std::memory_order_relaxed)) launch_->asked.store(true, std::memory_order_relaxed);
  return scheduler_.stopped();
}

void BlockTask::look() const { (runnable(false) ? launch_->can_run : launch_->waits) = true; }

Stuck BlockTask::report() const {
  Stuck stuck{
      .rank = launch_->rank, .block = block_, .parked = ready != nullptr, .waiting = waiting_, .seen = 0};
  if (waiting_.word) stuck.seen = load_relaxed(waiting_.word);
  if (*launch_->describe) stuck.line = (*launch_->describe)(stuck);
  return stuck;
}

void BlockTask::run() {
  try {
    (*launch_->body)(block_, *this);
  } catch (...) {
    std::call_once(launch_->failed, [&] { launch_->error = std::current_exception(); });
    scheduler_.options().raise(Stop::aborted, launch_->rank,
                               fmt::format("block {} failed: {}", block_, system::thrown_text()));
  }
  moved();
}

std::unique_ptr<Scheduler> make_scheduler(Scheduler::Options options, const Scheduler* fibers_of) {
  return options.seed ? make_seeded(std::move(options), fibers_of) : make_threaded(std::move(options));
}

}  // namespace chorale::fibers
