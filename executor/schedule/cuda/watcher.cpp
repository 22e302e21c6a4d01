#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "executor/system/texts.hpp"
#include "executor/system/thread.hpp"
#include "executor/world/group.hpp"
#include "streams.hpp"

namespace chorale::schedule_run {
namespace {

constexpr std::chrono::milliseconds between_looks{5};

/// A released wait finds this value. Any value from 1 on ends the wait, see CudaStreams::take().
constexpr uint32_t released = 2;

}  // namespace

Watcher::Watcher(const Bound& bound, const RankProgram& program, std::vector<uint32_t*> flags)
    : bound_(bound),
      program_(program),
      flags_(std::move(flags)),
      at_(std::max<size_t>(program.streams.size(), 1)),
      runs_(1),
      stands_(program.streams.size()) {
  thread_ = system::start_thread("watching streams", [this] { watch(); });
}

Watcher::~Watcher() {
  quit_ = true;
  thread_.join();
}

std::string Watcher::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

void Watcher::watch() {
  world::Group& group = bound_.world.group();
  while (!quit_.load(std::memory_order_relaxed)) {
    group.check_peers();
    if (load_acquire(&bound_.world.abort_word()->stop) != 0) {
      release();
    } else {
      look();
    }
    std::this_thread::sleep_for(between_looks);
  }
}

/// Stops the world if a stream has been at one take of one run for too long.
void Watcher::look() {
  if (bound_.timeout.count() == 0) return;
  const auto now = std::chrono::steady_clock::now();
  const uint64_t run = load_acquire(runs_.host());
  for (size_t stream = 0; stream < stands_.size(); ++stream) {
    Stand& stand = stands_[stream];
    const uint32_t at = load_acquire(at_.host() + stream);
    if (at == 0 || at != stand.at || run != stand.run) {
      stand = {at, run, now};
    } else if (now - stand.since > bound_.timeout) {
      const std::string where =
          describe(*bound_.schedule, bound_.unrolled, bound_.rank(), program_.actions[at - 1]);
      bound_.world.group().raise(
          Stop::timed_out, int(bound_.rank()),
          fmt::format("{} waited {}; {}", where, system::seconds_text(bound_.timeout), system::more_time));
      return;
    }
  }
}

/// Lets every stream of this rank reach its end. It is called again and again, because a stream clears a flag
/// and may wait for it once more in the next enqueued run.
void Watcher::release() {
  {
    const std::lock_guard lock(mutex_);
    if (report_.empty()) {
      for (size_t stream = 0; stream < stands_.size(); ++stream) {
        const uint32_t at = load_acquire(at_.host() + stream);
        if (at == 0) continue;
        report_ += (report_.empty() ? "" : "\n  ") +
                   describe(*bound_.schedule, bound_.unrolled, bound_.rank(), program_.actions[at - 1]);
      }
    }
  }
  for (uint32_t* const flag : flags_)
    if (flag) store_release(flag, released);
}

}  // namespace chorale::schedule_run
