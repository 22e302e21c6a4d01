#include "port.hpp"

#include "chorale/device/engine.hpp"
#include "chorale/world.hpp"
#include "executor/remote/endpoint.hpp"
#include "executor/remote/host_copies.hpp"
#include "executor/world/group.hpp"
#include "run.hpp"

namespace chorale::cpu {

Fifo::Fifo(fibers::Scheduler& scheduler) : scheduler_(scheduler), ring_(slots) {}

Stop Fifo::push(const Group& group, const Deadline& deadline, const Trigger& trigger) {
  // Count the trigger before it becomes visible, so that the proxy's work never looks like a deadlock.
  unfinished_.fetch_add(1, std::memory_order_relaxed);
  scheduler_.busy(1);
  const uint64_t ticket = add_relaxed(&head_, uint64_t(1));
  const auto free = [this, ticket] { return ticket - load_acquire(&tail_) < slots; };
  const Stop stop = spin_until(group, deadline, free);
  if (stop != Stop::none) return stop;  // drop() corrects the counts
  Slot& slot = ring_[ticket % slots];
  slot.trigger = trigger;
  group.step();
  store_release(&slot.turn, ticket + 1);
  return Stop::none;
}

bool Fifo::ready() const { return load_acquire(&ring_[tail_ % slots].turn) == tail_ + 1; }

bool Fifo::pop(Trigger& trigger) {
  if (!ready()) return false;
  trigger = ring_[tail_ % slots].trigger;
  store_release(&tail_, tail_ + 1);
  return true;
}

void Fifo::end() {
  unfinished_.fetch_sub(1, std::memory_order_relaxed);
  scheduler_.busy(-1);
}

void Fifo::drop() {
  scheduler_.busy(-unfinished_.exchange(0));
  for (Slot& slot : ring_) slot.turn = 0;
  head_ = tail_ = 0;
}

Proxy::Proxy(fibers::Scheduler& scheduler, World* world) : fifo_(scheduler) {
  if (world && world->group().several_hosts()) {
    remote::RemoteEndpoint::Events events;
    events.done = [this](uint32_t client, uint32_t channel) { done(client, channel); };
    events.moved = [&scheduler] { scheduler.moved(); };
    endpoint_ = std::make_unique<remote::RemoteEndpoint>(*world, std::make_unique<remote::HostCopies>(),
                                                         std::move(events));
  }
  if (scheduler.seeded()) return;
  fibers::QueueThread::Elsewhere elsewhere;
  if (endpoint_) {
    elsewhere = {[this] { return endpoint_->settled(); }, [this] { endpoint_->rest(); },
                 [this] { endpoint_->wake(); }};
  }
  const auto drop = [this] {
    fifo_.drop();
    if (endpoint_) endpoint_->drop();
  };
  thread_.emplace(
      "the proxy of port channels", 2000, [this] { return take(); }, drop, elsewhere);
}

Proxy::~Proxy() = default;

uint32_t Proxy::add_client(Run& run) {
  const std::lock_guard lock(mutex_);
  clients_.push_back(&run);
  return uint32_t(clients_.size() - 1);
}

void Proxy::remove_client(uint32_t client) {
  const std::lock_guard lock(mutex_);
  clients_[client] = nullptr;
}

bool Proxy::take() {
  const bool any = endpoint_ && endpoint_->work();
  Trigger trigger;
  if (!fifo_.pop(trigger)) return any;
  handle(trigger, Group{});
  return true;
}

void Proxy::begin() {
  if (thread_) thread_->begin();
}

Stop Proxy::end(bool stopped, const Deadline& deadline) {
  if (!thread_) {
    if (stopped) fifo_.drop();
    return Stop::none;
  }
  if (endpoint_ && !stopped) endpoint_->start_clock();
  thread_->end(stopped);
  if (stopped || !endpoint_ || endpoint_->idle()) return Stop::none;
  const Stop stop = deadline.poll();
  if (stop != Stop::none) thread_->end(true);
  return stop;
}

void Proxy::run_fiber(fibers::BlockHost& host, const std::atomic<int>& blocks_left) {
  struct Wake {
    const Fifo& fifo;
    const std::atomic<int>& blocks_left;
    bool operator()() const { return fifo.ready() || blocks_left.load(std::memory_order_acquire) == 0; }
  };
  const Wake wake{fifo_, blocks_left};
  Group group = block_group(0, 1, &host);
  while (host.stopped() == Stop::none) {
    Trigger trigger;
    if (fifo_.pop(trigger)) {
      group.step();
      handle(trigger, group);
    } else if (blocks_left.load(std::memory_order_acquire) == 0) {
      return;
    } else {
      host.park([](const void* of) { return (*static_cast<const Wake*>(of))(); }, &wake);
    }
  }
}

void Proxy::handle(const Trigger& trigger, const Group& group) {
  Run& run = *trigger.run;
  ChannelEnd& end = run.channels[trigger.channel];
  if (end.far) return send(trigger);
  if (trigger.bytes != 0) {
    transfer(group, trigger.bytes, Mem(static_cast<const void*>(trigger.from)),
             Mem(static_cast<void*>(trigger.to)));
  }
  if (trigger.signal && end.signal_at_peer) signal_add(group, end.signal_at_peer);
  add_release(&run.completed[trigger.channel].value, uint64_t(1));
  fifo_.end();
}

void Proxy::send(const Trigger& trigger) {
  Run& run = *trigger.run;
  remote::RemoteEndpoint::Order order =
      run.channels[trigger.channel].far.order(trigger.from, trigger.to, trigger.bytes, trigger.signal);
  order.client = run.client;
  order.channel = trigger.channel;
  order.binding = run.binding;
  order.run = run.epoch;
  endpoint_->send(order);
}

/// Records that the sent data has reached the peer.
void Proxy::done(uint32_t client, uint32_t channel) {
  const std::lock_guard lock(mutex_);
  if (Run* const run = clients_[client]) add_release(&run->completed[channel].value, uint64_t(1));
  fifo_.end();
}

}  // namespace chorale::cpu
