#include "monitor.hpp"

#include <chrono>

#include "../world/group.hpp"
#include "../world/thread.hpp"
#include "binding.hpp"

namespace chorale::cuda {
namespace {

constexpr std::chrono::milliseconds between_looks{5};

}  // namespace

Monitor::Monitor(World& world) : world_(world) {
  thread_ = world::start_thread("the watch over kernels", [this] { watch(); });
}

Monitor::~Monitor() {
  quit_ = true;
  thread_.join();
}

void Monitor::add(const Binding* binding) {
  const std::lock_guard lock(mutex_);
  bindings_.push_back(binding);
}

void Monitor::remove(const Binding* binding) {
  const std::lock_guard lock(mutex_);
  std::erase(bindings_, binding);
}

void Monitor::forget() {
  const std::lock_guard lock(mutex_);
  bindings_.clear();
}

std::string Monitor::report() const {
  const std::lock_guard lock(mutex_);
  for (const Binding* binding : bindings_) {
    std::string report;
    if (binding->stopped(report) != Stop::none) return report;
  }
  return "";
}

void Monitor::look() {
  Stop reason = Stop::none;
  std::string report;
  {
    const std::lock_guard lock(mutex_);
    for (const Binding* binding : bindings_) {
      if (reason == Stop::none) reason = binding->stopped(report);
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
