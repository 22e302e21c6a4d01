#include "handles.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <thread>
#include <unordered_map>
#include <utility>

#include "last_error.hpp"
#include "log.hpp"

namespace chorale::nccl {
namespace {

/// Counts the ranks of one communicator in this process: those that close() has been called for, and those
/// that have ended.
struct Closing {
  int ranks, called = 0, ended = 0;
};

/// Holds the communicators of the ranks of one group that live in this process.
struct Living {
  int communicators = 0;
  std::vector<std::unique_ptr<Communicator>> unused;  ///< those that no call and no handle uses any more
};

/// Holds what lives as long as the process. It is never destroyed, because threads may outlive main().
struct Process {
  const pid_t number = getpid();
  std::mutex mutex;
  std::unordered_map<const void*, Handle> handles;
  std::unordered_map<const void*, Living> living;  ///< by the group of the ranks
  std::condition_variable closed;
  int closing = 0;  ///< the number of communicators that are being closed
  std::unordered_map<const void*, std::shared_ptr<Closing>> closings;  ///< by the group of the ranks
};
Process& process() {
  static Process* const one = new Process;
  return *one;
}

[[noreturn]] void throw_unknown() {
  throw CallError(ncclInvalidArgument,
                  "comm is not a communicator of this process. It may have been destroyed or aborted");
}

/// Gives threads that close communicators a moment when the process ends, because CUDA ends with it.
[[gnu::destructor]] void wait_for_closing() {
  // A fork has none of these threads, and may have a locked mutex.
  if (process().number != getpid()) return;
  std::unique_lock lock(process().mutex);
  process().closed.wait_for(lock, std::chrono::seconds(2), [] { return process().closing == 0; });
}

/// Count what wait_for_closing() waits for.
void begin_closing() {
  const std::lock_guard<std::mutex> lock(process().mutex);
  ++process().closing;
}
void end_closing() {
  const std::lock_guard<std::mutex> lock(process().mutex);
  --process().closing;
  process().closed.notify_all();
}

/// Prepares a thread of this library for work on a device. If that fails, the work fails and says so.
void use_in_own_thread(Device& device) {
  outcome_of([&] { device.use_in_own_thread(); });
}

using Communicators = std::vector<std::unique_ptr<Communicator>>;

/// Leaves the memory of communicators until the process ends.
void keep(Communicators& all, const std::string& why) {
  for (std::unique_ptr<Communicator>& one : all) static_cast<void>(one.release());
  log::line(
      log::Level::info,
      fmt::format("a communicator keeps its memory, which its GPUs or its peers may still use: {}", why));
}

/// Frees communicators of GPUs that were aborted or have failed. Their kernels end soon, but until then they
/// access memory of this rank and of its peers. If this rank cannot learn that all of them have ended, the
/// memory stays.
void free_after_kernels(Communicators& all) {
  std::vector<Outcome> outcomes(all.size());
  std::vector<std::thread> threads;
  const Outcome started = outcome_of([&] {
    // The ranks of this process wait for each other, so each has a thread.
    for (size_t at = 0; at < all.size(); ++at)
      threads.emplace_back([&, at] {
        outcomes[at] = outcome_of([&] {
          all[at]->device().use_in_own_thread();
          all[at]->end_stopped();
        });
      });
  });
  for (std::thread& thread : threads) thread.join();
  outcomes.push_back(started);
  for (const Outcome& outcome : outcomes) {
    if (!outcome.good()) return keep(all, outcome.sentence);
  }
}

/// Frees the communicators of a group when nobody in this process uses them any more. Until then the memory
/// of one rank may be read by the others, because they share the address space.
void retire(Communicator* communicator) {
  Communicators all;
  {
    const std::lock_guard<std::mutex> lock(process().mutex);
    const auto group = process().living.find(&communicator->world().group());
    group->second.unused.emplace_back(communicator);
    if (int(group->second.unused.size()) < group->second.communicators) return;
    all = std::move(group->second.unused);
    process().closings.erase(group->first);  // a later group may have the same address
    process().living.erase(group);
  }
  const bool stopped = !outcome_of([&] { all.front()->world().check(); }).good();
  if (!stopped || backend_of(all.front()->config()) == Backend::cpu) return;
  const auto held = std::make_shared<Communicators>(std::move(all));
  begin_closing();
  const Outcome started = outcome_of([&] {
    std::thread([held] {
      free_after_kernels(*held);
      for (std::unique_ptr<Communicator>& one : *held) {
        if (one) use_in_own_thread(one->device());
        one.reset();
      }
      end_closing();
    }).detach();
  });
  if (started.good()) return;
  keep(*held, started.sentence);
  end_closing();
}

/// Returns the communicator in a pointer that calls retire() after its last use.
std::shared_ptr<Communicator> shared(std::unique_ptr<Communicator> made) {
  {
    const std::lock_guard<std::mutex> lock(process().mutex);
    ++process().living[&made->world().group()].communicators;
  }
  return {made.release(), retire};
}

/// Holds a call's turn. Calls that make communicators from the same one take turns.
class Turn {
 public:
  explicit Turn(const Init& init) : init_(init) {
    if (init_.parent) init_.parent->turns().wait(init_.turn);
  }
  ~Turn() { end(init_); }
  Turn(const Turn&) = delete;

  static void end(const Init& init) {
    if (init.parent) init.parent->turns().end(init.turn);
  }

 private:
  const Init& init_;
};

/// Makes the communicator of a handle.
Outcome make(Init& init) {
  const Outcome outcome = outcome_of([&] {
    if (init.aborts_parent) init.parent->abort("ncclCommShrink() ended the communicator");
    const Turn turn(init);
    const auto on = init.device->make_current();
    std::optional<World> world = init.join();
    if (!init.handle) return;
    auto made = shared(std::make_unique<Communicator>(std::move(*world), init.config, init.device));
    const std::lock_guard<std::mutex> lock(init.handle->mutex);
    init.handle->rank = made->rank();
    init.handle->ranks = made->ranks();
    if (init.handle->ended) made->abort("the communicator was destroyed or aborted before it was made");
    init.handle->communicator = std::move(made);
    init.handle->outcome = {};
  });
  if (!init.handle) return outcome;
  const std::lock_guard<std::mutex> lock(init.handle->mutex);
  if (!outcome.good()) init.handle->outcome = outcome;
  if (outcome.good() && log::prints(log::Level::info)) {
    log::line(log::Level::info,
              fmt::format("{} comm {} rank {} nranks {} cudaDev {} backend {} - Init COMPLETE",
                          info(init.function).name, fmt::ptr(init.handle.get()), init.handle->rank,
                          init.handle->ranks, init.handle->device, init.config.backend.value));
  }
  return outcome;
}

/// Makes a communicator, and takes its handle away if that fails.
Outcome make_and_wait(Init& init) {
  const Outcome outcome = make(init);
  if (!outcome.good() && init.handle) {
    outcome_of([&] { handles::take(init.handle.get()); });
    if (init.result) *init.result = nullptr;
  }
  return outcome;
}

}  // namespace

namespace handles {

ncclComm_t add(const Handle& handle) {
  const std::lock_guard<std::mutex> lock(process().mutex);
  process().handles.emplace(handle.get(), handle);
  return handle.get();
}

Handle find(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(process().mutex);
  const auto found = process().handles.find(comm);
  if (found == process().handles.end()) throw_unknown();
  return found->second;
}

Handle take(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(process().mutex);
  const auto found = process().handles.find(comm);
  if (found == process().handles.end()) throw_unknown();
  Handle handle = std::move(found->second);
  process().handles.erase(found);
  return handle;
}

}  // namespace handles

std::shared_ptr<Communicator> communicator_for_call(const Handle& handle) {
  const std::lock_guard<std::mutex> lock(handle->mutex);
  if (handle->ended) throw_unknown();  // another thread ended it after handles::find()
  if (handle->outcome.result == ncclInProgress) {
    throw CallError(
        ncclInvalidUsage,
        "the communicator is still being made. Call ncclCommGetAsyncError() until it no longer says "
        "ncclInProgress");
  }
  if (!handle->outcome.good()) throw CallError(handle->outcome.result, handle->outcome.sentence);
  if (handle->finalized) throw CallError(ncclInvalidUsage, "the communicator was finalized");
  return handle->communicator;
}

void note_failure(const Handle& handle, const Outcome& outcome) {
  switch (outcome.result) {
    case ncclSuccess:
    case ncclInProgress:
    case ncclInvalidArgument:
      return;
    case ncclInvalidUsage: {
      // A call that only this rank got wrong leaves the communicator usable. The world knows whether it does.
      std::shared_ptr<Communicator> communicator;
      {
        const std::lock_guard<std::mutex> lock(handle->mutex);
        communicator = handle->communicator;
      }
      if (!communicator || outcome_of([&] { communicator->check(); }).good()) return;
      break;
    }
    default:
      break;
  }
  const std::lock_guard<std::mutex> lock(handle->mutex);
  if (handle->outcome.good()) handle->outcome = outcome;
}

Outcome run(std::vector<Init> all) {
  for (Init& init : all) {
    if (init.parent) init.turn = init.parent->turns().take();
  }
  if (all.size() == 1 && (!all.front().handle || all.front().handle->blocking))
    return make_and_wait(all.front());
  std::vector<Outcome> outcomes(all.size());
  std::vector<std::thread> threads;
  bool in_progress = false;
  size_t begun = 0;
  Outcome started = outcome_of([&] {
    for (size_t at = 0; at < all.size(); ++at) {
      if (all[at].handle && !all[at].handle->blocking) {
        in_progress = true;
        std::thread([init = all[at]]() mutable {
          use_in_own_thread(*init.device);
          const Outcome outcome = make(init);
          if (!outcome.good())
            set_last_error(fmt::format("{}: {}", info(init.function).name, outcome.sentence));
        }).detach();
      } else {
        threads.emplace_back([&, at] {
          use_in_own_thread(*all[at].device);
          outcomes[at] = make_and_wait(all[at]);
        });
      }
      ++begun;
    }
  });
  for (size_t at = begun; at < all.size(); ++at) Turn::end(all[at]);
  for (std::thread& thread : threads) thread.join();
  if (!started.good()) return started;
  for (const Outcome& outcome : outcomes) {
    if (!outcome.good()) return outcome;
  }
  return {in_progress ? ncclInProgress : ncclSuccess, ""};
}

namespace {

/// Ends one rank of a communicator when all ranks have closed it.
void finish(std::shared_ptr<Communicator> communicator, const std::shared_ptr<Closing>& closing) {
  use_in_own_thread(communicator->device());
  const Outcome outcome = outcome_of([&] { communicator->finish(); });
  if (!outcome.good()) {
    const std::string why = fmt::format("not all ranks have closed the communicator: {}", outcome.sentence);
    log::line(log::Level::info, why);
    communicator->abort(why);
  }
  communicator.reset();
  const std::lock_guard<std::mutex> lock(process().mutex);
  ++closing->ended;
  --process().closing;
  process().closed.notify_all();
}

}  // namespace

void close(std::shared_ptr<Communicator> communicator) {
  // One thread may close all ranks of this process, one after the other. So only the last call waits.
  std::shared_ptr<Closing> closing;
  bool last = false;
  {
    const std::lock_guard<std::mutex> lock(process().mutex);
    const void* const group = &communicator->world().group();
    std::shared_ptr<Closing>& known = process().closings[group];
    if (!known)
      known = std::make_shared<Closing>(Closing{communicator->shares_process() ? communicator->ranks() : 1});
    closing = known;
    last = ++closing->called == closing->ranks;
    if (last) process().closings.erase(group);
    ++process().closing;
  }
  if (!outcome_of([&] { std::thread(finish, communicator, closing).detach(); }).good())
    return finish(std::move(communicator), closing);
  communicator.reset();
  if (!last) return;
  std::unique_lock lock(process().mutex);
  process().closed.wait_for(lock, std::chrono::seconds(5), [&] { return closing->ended == closing->ranks; });
}

}  // namespace chorale::nccl
