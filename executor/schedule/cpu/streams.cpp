#include "streams.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "chorale/device/group_cpu.hpp"
#include "executor/fibers/report.hpp"
#include "executor/fibers/scheduler.hpp"
#include "executor/system/deadline.hpp"
#include "executor/system/texts.hpp"
#include "executor/system/thread.hpp"
#include "executor/system/thrown.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"

namespace chorale::schedule_run {
namespace {

using schedule::StepKind;
using Clock = std::chrono::steady_clock;

/// Sets the time between checks of the world and of dead peers, which ring no bell.
constexpr std::chrono::milliseconds between_looks{20};

std::atomic<uint32_t>& word(uint32_t* flag) { return *reinterpret_cast<std::atomic<uint32_t>*>(flag); }
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
              std::atomic<uint32_t>::is_always_lock_free);

void ring(std::atomic<uint32_t>& bell) { world::wake_all(bell); }

/// Tells the scheduler that other streams of the rank may make progress while one stream is in a launch:
/// peers may wait for their data. The scheduler cannot tell when threads make no more progress, so deadlines
/// end them. With a seed the scheduler runs all streams itself.
class AtWork {
 public:
  explicit AtWork(fibers::Scheduler& scheduler) : scheduler_(scheduler), threads_(!scheduler.seeded()) {
    if (threads_) scheduler_.busy(1);
  }
  ~AtWork() {
    if (threads_) scheduler_.busy(-1);
  }

 private:
  fibers::Scheduler& scheduler_;
  const bool threads_;
};

/// Runs a stream as a block of the scheduler.
class FiberHost final : public StreamHost {
 public:
  FiberHost(fibers::BlockHost& host, uint32_t stream, uint32_t streams, AbortWord* abort,
            const RankProgram& program)
      : host_(host), group_(block_group(stream, streams, &host)), deadline_{abort, 0, 0}, program_(program) {}

  Stop wait(bool (*ready)(const void*), const void* state, std::atomic<uint32_t>&,
            const Action& action) override {
    host_.set_waiting({"a stream", uint32_t(&action - program_.actions.data()), 0, nullptr, action.peer});
    return spin_until(group_, deadline_, [ready, state] { return ready(state); });
  }
  void step() override { group_.step(); }
  void wait_in(const Action& action) override {
    host_.set_waiting({"a launch", uint32_t(&action - program_.actions.data()), 0, nullptr, -1});
  }

 private:
  fibers::BlockHost& host_;
  Group group_;
  Deadline deadline_;
  const RankProgram& program_;
};

}  // namespace

/// Runs a stream as a thread.
class ThreadHost final : public StreamHost {
 public:
  ThreadHost(CpuStreams& streams, uint32_t stream) : streams_(streams), stream_(stream) {}

  Stop wait(bool (*ready)(const void*), const void* state, std::atomic<uint32_t>& bell,
            const Action& action) override {
    world::Group& group = streams_.world_.group();
    const AbortWord* const abort = streams_.world_.abort_word();
    // A wait for another stream of this rank needs no deadline. If that stream is late, its own wait has one.
    const Clock::time_point limit =
        action.peer >= 0 ? system::deadline_after(streams_.bound_.timeout) : Clock::time_point::max();
    for (unsigned looks = 0;; ++looks) {
      const uint32_t seen = bell.load(std::memory_order_acquire);
      if (ready(state)) return Stop::none;
      Stop stop = Stop(load_acquire(&abort->stop));
      if (stop == Stop::none && Clock::now() > limit) {
        group.raise(Stop::timed_out, streams_.world_.rank(),
                    fmt::format("{} waited {}; {}", streams_.text(action),
                                system::seconds_text(streams_.bound_.timeout), system::more_time));
        stop = Stop::timed_out;
      }
      if (stop != Stop::none) {
        if (ready(state)) return Stop::none;  // it came in time
        const std::lock_guard lock(streams_.mutex_);
        streams_.progress_[stream_].stopped_at = streams_.text(action);
        return stop;
      }
      if (looks < 32) {
        sched_yield();
      } else {
        group.check_peers();
        world::sleep_on(bell, seen, between_looks);
      }
    }
  }

 private:
  CpuStreams& streams_;
  const uint32_t stream_;
};

CpuStreams::CpuStreams(Bound bound)
    : bound_(std::move(bound)),
      world_(bound_.world),
      memory_(bound_),
      program_(make_rank_program(bound_.unrolled, bound_.rank(), memory_.places(), bound_.functions,
                                 memory_.before(), memory_.after())),
      launches_(world_, bound_.config, bound_.plans, program_),
      progress_(program_.streams.size()) {
  try {
    world::collective_try(world_, [this] { start(); });
  } catch (...) {
    quit();
    throw;
  }
}

CpuStreams::~CpuStreams() { quit(); }

void CpuStreams::start() {
  if (world_.scheduler().seeded()) return;
  threads_.reserve(program_.streams.size());
  for (uint32_t stream = 0; stream < program_.streams.size(); ++stream)
    threads_.push_back(system::start_thread("a stream", [this, stream] { serve(stream); }));
}

/// Ends all threads, even if only some of them could be started.
void CpuStreams::quit() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  requested_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// -- Running actions

Stop CpuStreams::run_actions(uint32_t stream, uint64_t run, StreamHost& host) {
  Progress& mine = progress_[stream];
  for (const uint32_t index : program_.streams[stream]) {
    const Action& action = program_.actions[index];
    Stop stop = Stop(load_acquire(&world_.abort_word()->stop));
    if (stop == Stop::none) stop = attempt(action, run, host);
    if (stop != Stop::none) return stop;
    mine.done.fetch_add(1, std::memory_order_release);
    mine.bell.fetch_add(1, std::memory_order_release);
    ring(mine.bell);
  }
  return Stop::none;
}

/// Does an action. An exception stops the world, because no caller of a stream could catch it.
Stop CpuStreams::attempt(const Action& action, uint64_t run, StreamHost& host) {
  std::optional<AtWork> at_work;
  if (action.kind == StepKind::launch) at_work.emplace(world_.scheduler());
  try {
    return act(action, run, host);
  } catch (...) {
    // This has no effect in a world that has already stopped, which is why a launch may end early.
    world_.abort(fmt::format("{}: {}", text(action), system::thrown_text()));
  }
  const std::lock_guard lock(mutex_);
  progress_[action.stream].stopped_at = text(action);
  return Stop(load_acquire(&world_.abort_word()->stop));
}

Stop CpuStreams::act(const Action& action, uint64_t run, StreamHost& host) {
  host.step();
  switch (action.kind) {
    case StepKind::copy:
    case StepKind::put:
    case StepKind::get:
      for (const Copy& copy : action.copies) {
        for (uint64_t row = 0; row < copy.rows; ++row)
          std::memmove(copy.to + row * copy.to_pitch, copy.from + row * copy.from_pitch, copy.bytes);
      }
      return Stop::none;
    case StepKind::fill:
    case StepKind::call:
      call_function(action, world_);
      return Stop::none;
    case StepKind::launch:
      return launch(action, host);
    case StepKind::after:
      for (const Action::Point& point : action.points) {
        Progress& other = progress_[point.stream];
        const std::pair<const Progress&, uint64_t> wanted{
            other, run * program_.streams[point.stream].size() + point.actions};
        const auto there = [](const void* state) {
          const auto& [progress, count] = *static_cast<const decltype(wanted)*>(state);
          return progress.done.load(std::memory_order_acquire) >= count;
        };
        if (const Stop stop = host.wait(there, &wanted, other.bell, action); stop != Stop::none) return stop;
      }
      return Stop::none;
    case StepKind::post:
      store_release(action.flag, 1u);
      ring(word(action.flag));
      return Stop::none;
    case StepKind::take: {
      const auto set = [](const void* flag) { return load_acquire(static_cast<const uint32_t*>(flag)) != 0; };
      const Stop stop = host.wait(set, action.flag, word(action.flag), action);
      // The owner of a flag clears it. The poster sets it again only after it has taken a later post of this
      // rank.
      if (stop == Stop::none) store_relaxed(action.flag, 0u);
      return stop;
    }
    default:
      return Stop::none;
  }
}

Stop CpuStreams::launch(const Action& action, StreamHost& host) {
  host.wait_in(action);
  launches_.execute(action, nullptr);
  return Stop::none;
}

void CpuStreams::serve(uint32_t stream) {
  ThreadHost host(*this, stream);
  for (uint64_t run = 0;; ++run) {
    {
      std::unique_lock lock(mutex_);
      requested_changed_.wait(lock, [&] { return quit_ || requested_ > run; });
      if (requested_ <= run) return;
    }
    run_actions(stream, run, host);
    {
      const std::lock_guard lock(mutex_);
      progress_[stream].runs = run + 1;
    }
    runs_changed_.notify_all();
  }
}

// -- Runs

/// Returns when all streams have ended, also after an error, because the caller may then free its buffers.
void CpuStreams::run(void*) {
  if (is_called_by_stream()) refuse_in_a_function("run");
  check();
  if (world_.scheduler().seeded()) return run_as_fibers();
  {
    std::unique_lock lock(mutex_);
    const uint64_t mine = ++requested_;
    requested_changed_.notify_all();
    runs_changed_.wait(lock, [&] {
      return std::all_of(progress_.begin(), progress_.end(),
                         [mine](const Progress& stream) { return stream.runs >= mine; });
    });
  }
  check();
}

void CpuStreams::run_as_fibers() {
  world_.scheduler().check_caller();
  const uint32_t streams = uint32_t(program_.streams.size());
  const uint64_t run = requested_++;
  const FlagSet in_fibers(is_in_fibers_);
  const fibers::LaunchResult result = world_.scheduler().launch(
      world_.rank(), int(streams),
      [&](int stream, fibers::BlockHost& block) {
        FiberHost host(block, uint32_t(stream), streams, world_.abort_word(), program_);
        run_actions(uint32_t(stream), run, host);
      },
      [this](const fibers::Stuck& stuck) {
        return stuck.waiting.what ? "  " + text(program_.actions[stuck.waiting.op_index]) : "";
      });
  if (result.stop == Stop::none) return;
  try {
    world_.check();
  } catch (const RunError& error) {
    throw RunError(error.reason,
                   error.what() + fibers::describe(result.stuck, fibers::Ranks::all, error.what()));
  }
}

/// Returns true if a stream calls. A function that waited for the end of its own run would never return.
bool CpuStreams::is_called_by_stream() const {
  const auto is_this = [](const std::thread& one) { return one.get_id() == std::this_thread::get_id(); };
  return is_in_fibers_ || std::any_of(threads_.begin(), threads_.end(), is_this);
}

void CpuStreams::synchronize(void*) {
  if (is_called_by_stream()) refuse_in_a_function("synchronize");
  check();
}

/// Throws the world's error. Adds the state of this rank's streams, unless the error already includes it.
void CpuStreams::check() {
  try {
    world_.check();
  } catch (const RunError& error) {
    std::string said = error.what();
    const std::lock_guard lock(mutex_);
    for (const Progress& stream : progress_) {
      if (!stream.stopped_at.empty() && said.find(stream.stopped_at) == std::string::npos)
        said += "\n  " + stream.stopped_at;
    }
    throw RunError(error.reason, said);
  }
}

void* CpuStreams::buffer(uint32_t tensor) const { return memory_.places().tensors[bound_.rank()][tensor]; }

std::string CpuStreams::text(const Action& action) const {
  return describe(*bound_.schedule, bound_.unrolled, bound_.rank(), action);
}

std::unique_ptr<Streams> make_cpu_streams(Bound bound) {
  return std::make_unique<CpuStreams>(std::move(bound));
}

}  // namespace chorale::schedule_run
