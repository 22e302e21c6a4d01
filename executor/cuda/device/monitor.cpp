#include "monitor.hpp"

#include <chrono>

#include "executor/system/thread.hpp"
#include "executor/world/group.hpp"

namespace chorale::cuda {
namespace {

constexpr std::chrono::milliseconds between_looks{5};

}  // namespace

Monitor::Monitor(World& world) : world_(world) {
  thread_ = system::start_thread("watching kernels", [this] { watch(); });
}

Monitor::~Monitor() {
  quit_ = true;
  thread_.join();
}

void Monitor::add(const Watched* watched) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(watched);
}

void Monitor::remove(const Watched* watched) {
  const std::lock_guard lock(mutex_);
  std::erase(watched_, watched);
}

void Monitor::forget() {
  const std::lock_guard lock(mutex_);
  watched_.clear();
}

std::string Monitor::report() const {
  const std::lock_guard lock(mutex_);
  for (const Watched* watched : watched_) {
    std::string report;
    if (watched->stopped(report) != Stop::none) return report;
  }
  return "";
}

void Monitor::look() {
  Stop reason = Stop::none;
  std::string report;
  {
    const std::lock_guard lock(mutex_);
    for (const Watched* watched : watched_) {
      if (reason == Stop::none) reason = watched->stopped(report);
    }
  }
  if (reason != Stop::none)
    world_.group().raise(reason, world_.rank(), "rank " + std::to_string(world_.rank()) + " in " + report);
}

void Monitor::watch() {
  world::Group& group = world_.group();
  while (!quit_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(between_looks);
    group.check_peers();
    if (load_relaxed(&world_.abort_word()->stop) == 0) look();
  }
}

}  // namespace chorale::cuda
