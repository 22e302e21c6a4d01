#include "port.hpp"

#include "courier.hpp"
#include "machine.hpp"

namespace chorale::cpu {
namespace {

/// The most bytes of a message to another host. After each message both ends see a long transfer move.
constexpr uint64_t part_bytes = uint64_t(4) << 20;

}  // namespace

Fifo::Fifo(Scheduler& scheduler) : scheduler_(scheduler), ring_(slots) {}

Stop Fifo::push(const Group& group, const Deadline& deadline, const Trigger& trigger) {
  // Count the trigger before anybody can see it, so that the proxy's work never looks like a deadlock.
  unfinished_.fetch_add(1, std::memory_order_relaxed);
  scheduler_.busy(1);
  const uint64_t ticket = add_relaxed(&head_, uint64_t(1));
  const auto free = [this, ticket] { return ticket - load_acquire(&tail_) < slots; };
  const Stop stop = spin_until(group, deadline, free);
  if (stop != Stop::none) return stop;  // drop() puts the counts right
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

Proxy::Proxy(Scheduler& scheduler, Courier* courier) : fifo_(scheduler), courier_(courier) {
  if (scheduler.seeded()) return;
  QueueThread::Elsewhere elsewhere;
  if (courier_) {
    elsewhere = {[this] { return courier_->settled(); }, [this] { courier_->rest(); },
                 [this] { courier_->wake(); }};
  }
  const auto drop = [this] {
    fifo_.drop();
    unsent_.reset();
    if (courier_) courier_->drop();
  };
  thread_.emplace(
      "the proxy of port channels", 2000, [this] { return take(); }, drop, elsewhere);
}

bool Proxy::take() {
  bool any = courier_ && courier_->work();
  // Data on its way to other hosts is kept until it is done. This limits how much is kept.
  if (courier_ && !courier_->has_room()) return any;
  Trigger trigger;
  if (unsent_) {
    send_part();
  } else if (fifo_.pop(trigger)) {
    handle(trigger, Group{});
  } else {
    return any;
  }
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
  if (courier_ && !stopped) courier_->start_clock();
  thread_->end(stopped);
  if (stopped || !courier_ || courier_->idle()) return Stop::none;
  const Stop stop = deadline.poll();
  if (stop != Stop::none) thread_->end(true);
  return stop;
}

void Proxy::run_fiber(BlockHost& host, const std::atomic<int>& blocks_left) {
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

char* Proxy::room_for(const Run& run) {
  const size_t room = Machine::room_bytes(run.image);
  if (room_.size() < room) room_.resize(room);
  return room_.data();
}

/// Sends the next part of `unsent_`. Packets go as one part, since their slots cannot be cut at a byte.
void Proxy::send_part() {
  Trigger part = *unsent_;
  const bool whole = part.range.end - part.range.first <= part_bytes ||
                     has(part.action, Action::pack | Action::copy_packets);
  if (!whole) {
    part.action = Action::copy;  // the signal goes with the last part
    part.range.end = part.range.first + part_bytes;
  }
  Machine machine(*part.run, Group{}, nullptr, room_for(*part.run));
  machine.fix(part.range);
  courier_->send(part, whole, machine);
  if (whole) {
    unsent_.reset();
  } else {
    unsent_->range.first = part.range.end;
  }
}

void Proxy::handle(const Trigger& trigger, const Group& group) {
  const Run& run = *trigger.run;
  if (run.far && run.far[trigger.channel]) {
    unsent_ = trigger;
    return send_part();
  }
  Machine machine(run, group, nullptr, room_for(run));
  machine.fix(trigger.range);
  const op::Places<Role::Read> plain{&trigger.src, 1};
  const op::Places<Role::PacketRead> packets{&trigger.src, 1};
  const op::Places<Role::RemoteWrite> to_plain{&trigger.dst, 1};
  const op::Places<Role::RemotePacketWrite> to_packets{&trigger.dst, 1};
  if (has(trigger.action, Action::copy)) copy_plain(machine, op::Slice{}, plain, to_plain);
  if (has(trigger.action, Action::pack)) copy_to_packets(machine, op::Slice{}, plain, to_packets);
  if (has(trigger.action, Action::copy_packets)) forward_packets(machine, op::Slice{}, packets, to_packets);
  if (has(trigger.action, Action::signal)) {
    Signal* const there = run.signals_at_peer[trigger.channel];
    if (there) signal_add(group, there);
  }
  add_release(&run.completed[trigger.channel].value, uint64_t(1));
  fifo_.end();
}

}  // namespace chorale::cpu
