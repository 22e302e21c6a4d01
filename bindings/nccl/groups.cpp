#include "groups.hpp"

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

namespace chorale::nccl::group {
namespace {

thread_local int depth = 0;
thread_local ncclResult_t error = ncclSuccess;
thread_local Calls calls;

Outcome run_tasks(const Handle& handle, Communicator& communicator, std::span<const Task> tasks) {
  const Outcome outcome = outcome_of([&] { communicator.run(tasks); });
  note_failure(handle, outcome);
  return outcome;
}

Outcome run_work(const Work& work) { return run_tasks(work.handle, *work.communicator, work.tasks); }

/// Returns whether two works enqueue on one stream of a GPU.
bool share_a_stream(const Work& one, const Work& other) {
  Communicator &mine = *one.communicator, &theirs = *other.communicator;
  if (backend_of(mine.config()) == Backend::cpu || mine.device().number() != theirs.device().number())
    return false;
  return std::any_of(one.tasks.begin(), one.tasks.end(), [&](const Task& task) {
    return std::any_of(other.tasks.begin(), other.tasks.end(),
                       [&](const Task& of_other) { return of_other.stream == task.stream; });
  });
}

/// Divides works into sequences that run at the same time, one thread each. Works on one stream stay in their
/// order, because the other ranks enqueue them in this order too. Ranks of one communicator wait for each
/// other, so no sequence has two of them.
std::vector<std::vector<size_t>> sequences_of(const std::vector<Work>& works) {
  std::vector<std::vector<size_t>> sequences;
  const auto fits = [&](const std::vector<size_t>& sequence, const Work& work) {
    return share_a_stream(works[sequence.back()], work) &&
           std::none_of(sequence.begin(), sequence.end(), [&](size_t at) {
             return &works[at].communicator->world().group() == &work.communicator->world().group();
           });
  };
  for (size_t at = 0; at < works.size(); ++at) {
    auto found = std::find_if(sequences.begin(), sequences.end(),
                              [&](const std::vector<size_t>& sequence) { return fits(sequence, works[at]); });
    if (found == sequences.end()) found = sequences.emplace(sequences.end());
    found->push_back(at);
  }
  return sequences;
}

Outcome run_works(const std::vector<Work>& works) {
  std::vector<Outcome> outcomes(works.size());
  const std::vector<std::vector<size_t>> sequences = sequences_of(works);
  // If nothing is left to agree on, one thread enqueues the work of all ranks of this process.
  bool enqueues = sequences.size() == 1;
  if (!enqueues) {
    // After an error here the work itself fails, which says so.
    outcome_of([&] {
      enqueues = std::all_of(works.begin(), works.end(),
                             [](const Work& work) { return work.communicator->only_enqueues(work.tasks); });
    });
  }
  if (enqueues) {
    std::transform(works.begin(), works.end(), outcomes.begin(), run_work);
  } else {
    std::vector<std::thread> threads;
    const Outcome started = outcome_of([&] {
      for (const std::vector<size_t>& sequence : sequences) {
        threads.emplace_back([&] {
          for (const size_t at : sequence) {
            outcome_of([&] { works[at].communicator->device().use_in_own_thread(); });
            outcomes[at] = run_work(works[at]);
          }
        });
      }
    });
    // Otherwise the ranks that have started wait for those that have not.
    for (size_t left = threads.size(); left < sequences.size(); ++left) {
      for (const size_t at : sequences[left]) works[at].communicator->abort(started.sentence);
    }
    for (std::thread& thread : threads) thread.join();
    if (!started.good()) return started;
  }
  for (const Outcome& outcome : outcomes) {
    if (!outcome.good()) return outcome;
  }
  return {};
}

}  // namespace

void start() { ++depth; }

End end() {
  if (depth == 0) return {false, false, ncclInvalidUsage};
  if (--depth > 0) return {true, false, ncclSuccess};
  return {true, true, std::exchange(error, ncclSuccess), std::exchange(calls, {})};
}

void fail(ncclResult_t result) {
  if (depth > 0) error = result;
}

Outcome add(Init init) {
  if (depth == 0) {
    std::vector<Init> one;
    one.push_back(std::move(init));
    return nccl::run(std::move(one));
  }
  const bool blocking = !init.handle || init.handle->blocking;
  calls.inits.push_back(std::move(init));
  return {blocking ? ncclSuccess : ncclInProgress, ""};
}

Outcome add(const Handle& handle, Task task) {
  const std::shared_ptr<Communicator> communicator = communicator_for_call(handle);
  communicator->check_task(task);
  if (depth == 0) return run_tasks(handle, *communicator, {&task, 1});
  const auto known = std::find_if(calls.works.begin(), calls.works.end(),
                                  [&](const Work& work) { return work.handle == handle; });
  if (known != calls.works.end()) {
    known->tasks.push_back(task);
  } else {
    calls.works.push_back({handle, communicator, {task}});
  }
  return {};
}

Outcome run(Calls all) {
  Outcome made;
  if (!all.inits.empty()) made = nccl::run(std::move(all.inits));
  if (!made.good()) return made;
  const Outcome ran = all.works.empty() ? Outcome{} : run_works(all.works);
  return ran.good() ? made : ran;
}

}  // namespace chorale::nccl::group
