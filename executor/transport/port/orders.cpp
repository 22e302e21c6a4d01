#include "orders.hpp"

namespace chorale::transport {

OrderProxy::OrderProxy(fibers::Scheduler& scheduler, std::function<void(const PortOrder&)> carry_out)
    : scheduler_(scheduler), carry_out_(std::move(carry_out)), orders_(slots) {
  queue_.orders = orders_.data();
  queue_.slots = slots;
  queue_.head = &head_;
  queue_.tail = &tail_;
  queue_.announced = this;
  queue_.announce = [](void* of) {
    OrderProxy& self = *static_cast<OrderProxy*>(of);
    self.unfinished_.fetch_add(1, std::memory_order_relaxed);
    self.scheduler_.busy(1);
  };
  if (!scheduler_.seeded())
    thread_.emplace(
        "a proxy", 500, [this] { return take(); }, [this] { drop(); });
}

bool OrderProxy::ready() const { return load_acquire(&orders_[tail_ % slots].turn) == tail_ + 1; }

/// Carries out one order. Returns false if there is none.
bool OrderProxy::take() {
  if (!ready()) return false;
  const PortOrder order = orders_[tail_ % slots];
  store_release(&tail_, tail_ + 1);
  carry_out_(order);
  unfinished_.fetch_sub(1, std::memory_order_relaxed);
  scheduler_.busy(-1);
  return true;
}

void OrderProxy::drop() {
  scheduler_.busy(-unfinished_.exchange(0));
  for (PortOrder& order : orders_) order.turn = 0;
  head_ = tail_ = 0;
}

void OrderProxy::begin() {
  if (thread_) thread_->begin();
}

void OrderProxy::end(bool stopped) {
  if (thread_) return thread_->end(stopped);
  if (stopped) drop();
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
