#include "scheduler.hpp"

#include <fmt/format.h>

#include "../interpreter/report.hpp"
#include "../world/group.hpp"
#include "../world/thrown.hpp"
#include "chorale/error.hpp"
#include "scheduler_impl.hpp"

namespace chorale::cpu {

void SchedulerImpl::run_seeded(std::vector<std::function<void()>>) {
  throw UsageError("run_seeded() needs a scheduler with a seed");
}

bool SchedulerImpl::wait(Ready, const void*, bool) {
  throw UsageError("wait() needs a scheduler with a seed");
}

/// The blocks of all ranks of this process.
std::string SchedulerImpl::lines_of(const std::vector<Stuck>& seen) const {
  return interpreter::describe(seen, options_.complete ? interpreter::Ranks::all : interpreter::Ranks::some);
}

void SchedulerImpl::time_out(int rank, std::vector<Stuck> seen) {
  sort_by_rank(seen);
  options_.raise(
      Stop::timed_out, rank,
      fmt::format("a launch of rank {} has not ended within {:.3g} s; {}{}", rank,
                  std::chrono::duration<double>(options_.timeout).count(), world::more_time, lines_of(seen)));
}

void SchedulerImpl::deadlock(int rank, const std::string& why, std::vector<Stuck> seen) {
  sort_by_rank(seen);
  options_.raise(Stop::deadlock, rank, why + lines_of(seen));
}

void SchedulerImpl::cannot_launch(int rank, int blocks, const std::exception& error) {
  options_.raise(Stop::aborted, rank, fmt::format("a launch of {} blocks failed: {}", blocks, error.what()));
}

BlockTask::BlockTask(SchedulerImpl& scheduler) : Task(block_stack_bytes), scheduler_(scheduler) {}

void BlockTask::begin(Launch& launch, int block) {
  launch_ = &launch;
  block_ = block;
  ready = nullptr;
  reported = false;
  waiting_ = {};
}

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
                               fmt::format("block {} failed: {}", block_, world::thrown_text()));
  }
}

Scheduler::Scheduler(Options options, const Scheduler* fibers_of)
    : impl_(options.seed ? make_seeded(std::move(options), fibers_of ? fibers_of->impl_.get() : nullptr)
                         : make_threaded(std::move(options))) {}

Scheduler::~Scheduler() = default;

LaunchResult Scheduler::launch(int rank, int blocks, const Body& body, const Describe& describe) {
  if (blocks < 0) throw UsageError(fmt::format("launch of {} blocks", blocks));
  return impl_->launch(rank, blocks, body, describe);
}

void Scheduler::busy(int change) { impl_->busy(change); }
void Scheduler::end_rank(int rank) { impl_->end_rank(rank); }
bool Scheduler::seeded() const { return impl_->options().seed.has_value(); }
void Scheduler::check_caller() const { impl_->check_caller(); }
void Scheduler::run_seeded(std::vector<std::function<void()>> bodies) {
  impl_->run_seeded(std::move(bodies));
}
bool Scheduler::wait(Ready ready, const void* state, bool obey_stop) {
  return impl_->wait(ready, state, obey_stop);
}
void Scheduler::rearm() { impl_->rearm(); }

}  // namespace chorale::cpu
