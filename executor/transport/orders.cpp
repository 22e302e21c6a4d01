#include "orders.hpp"

#include <sched.h>

#include <chrono>

#include "../world/thread.hpp"

namespace chorale::transport {

OrderProxy::OrderProxy(cpu::Scheduler& scheduler, std::function<void(const PortOrder&)> carry_out)
    : scheduler_(scheduler), carry_out_(std::move(carry_out)), orders_(slots) {
  queue_.orders = orders_.data();
  queue_.slots = slots;
  queue_.head = &head_;
  queue_.tail = &tail_;
  queue_.done = &done_;
  queue_.announced = this;
  queue_.announce = [](void* of) {
    OrderProxy& self = *static_cast<OrderProxy*>(of);
    self.unfinished_.fetch_add(1, std::memory_order_relaxed);
    self.scheduler_.busy(1);
  };
  if (!scheduler_.seeded()) thread_ = world::start_thread("a proxy", [this] { serve(); });
}

OrderProxy::~OrderProxy() {
  if (!thread_.joinable()) return;
  state_.store(quitting, std::memory_order_release);
  state_.notify_all();
  thread_.join();
}

bool OrderProxy::ready() const { return load_acquire(&orders_[tail_ % slots].turn) == tail_ + 1; }

/// Carries out one order; false if there is none.
bool OrderProxy::take() {
  if (!ready()) return false;
  const PortOrder order = orders_[tail_ % slots];
  store_release(&tail_, tail_ + 1);
  carry_out_(order);
  store_release(&done_, tail_);
  unfinished_.fetch_sub(1, std::memory_order_relaxed);
  scheduler_.busy(-1);
  return true;
}

void OrderProxy::drop() {
  scheduler_.busy(-unfinished_.exchange(0));
  for (PortOrder& order : orders_) order.turn = 0;
  head_ = tail_ = done_ = 0;
}

void OrderProxy::begin() {
  if (!thread_.joinable()) return;
  state_.store(running, std::memory_order_release);
  state_.notify_all();
}

void OrderProxy::end(bool stopped) {
  if (!thread_.joinable()) {
    if (stopped) drop();
    return;
  }
  const uint32_t ask = stopped ? dropping : draining;
  state_.store(ask, std::memory_order_release);
  state_.notify_all();
  state_.wait(ask, std::memory_order_acquire);
}

void OrderProxy::serve() {
  unsigned looks = 0;
  for (;;) {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state == quitting) return;
    if (state == idle) {
      state_.wait(idle, std::memory_order_acquire);
      looks = 0;
      continue;
    }
    if (state != dropping && take()) {
      looks = 0;
      continue;
    }
    if (state == running) {
      // The blocks may want the core.
      if (++looks < 500) {
        sched_yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      continue;
    }
    if (state == dropping) drop();
    state_.store(idle, std::memory_order_release);
    state_.notify_all();
  }
}

void OrderProxy::run_fiber(HostBlock& host, const std::atomic<int>& threads_left) {
  const auto wake = [this, &threads_left] {
    return ready() || threads_left.load(std::memory_order_acquire) == 0;
  };
  while (host.stopped() == Stop::none) {
    if (ready()) {
      host.step();
      take();
    } else if (threads_left.load(std::memory_order_acquire) == 0) {
      return;
    } else {
      host.park([](const void* of) { return (*static_cast<const decltype(wake)*>(of))(); }, &wake);
    }
  }
}

}  // namespace chorale::transport
