/// \file
/// On the CPU's machine a thread block is one fiber, and its group has one thread.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../interpreter/packet_form.hpp"
#include "../interpreter/semantics.hpp"
#include "chorale/device/engine.hpp"
#include "port.hpp"
#include "reduction.hpp"
#include "run.hpp"
#include "scheduler.hpp"

namespace chorale::cpu {

class Machine {
 public:
  /// `room` holds room_bytes(image) bytes. `host` is null for a proxy thread.
  Machine(const Run& run, const Group& group, BlockHost* host, char* room)
      : run_(run), group_(group), host_(host), room_(room) {}

  static size_t room_bytes(const image::Image& image) { return 2 * (size_t(image.widest) + 2) * item_bytes; }

  const image::Image& image() const { return run_.image; }
  uint32_t flag() const { return uint32_t(run_.epoch); }
  const Deadline* deadline() const { return &run_.deadline; }
  uint64_t bank(uint64_t bytes) const { return run_.epoch % 2 ? 0 : bytes; }
  uint64_t packet_bank(uint64_t bytes) const { return bank(bytes); }

  char* base(uint32_t buffer) const {
    const image::Buffer& of = run_.image.buffers[buffer];
    const uint64_t skip = of.slice_bytes != 0 ? run_.image.skip : 0;
    if (of.base) return of.base + skip;
    const Published& there = *run_.published[of.rank];
    char* const base = run_.address(of.rank, load_relaxed(of.kind == 0 ? &there.in : &there.out));
    return base ? base + skip : nullptr;
  }

  image::Range range(uint64_t bytes, const op::Slice& slice) const {
    if (fixed_) return *fixed_;
    return image::range_of(bytes, turn_first_, turn_bytes_, slice.index, slice.size, run_.image.alignment);
  }
  void turn(uint64_t first, uint64_t bytes) {
    turn_first_ = first;
    turn_bytes_ = bytes;
  }
  /// Makes range() return this range from now on, whatever the operand. A proxy uses it, as it is given its
  /// range.
  void fix(const image::Range& range) { fixed_ = &range; }

  template <class T, class Item>
  T* list(uint32_t n, const Item& item) {
    static_assert(sizeof(T) <= item_bytes && std::is_trivially_destructible_v<T>);
    T* const items = reinterpret_cast<T*>(room_ + used_);
    used_ += size_t(n) * item_bytes;
    assert(used_ <= room_bytes(run_.image));
    for (uint32_t at = 0; at < n; ++at) new (&items[at]) T(item(at));
    return items;
  }
  void release_lists() { used_ = 0; }

  template <class F>
  Stop with_packet(const F& f) const {
    return interpreter::with_packet_form(run_.packet, f);
  }

  void enter(uint32_t record) {
    if (host_) host_->moved();  // the operation before is done
    op_index_ = record - first_record_;
    name_ = record_name(run_.image.records[record].code);
    expect(flag(), nullptr, -1);
    note(op_index_);
  }

  // A block calls these before and after run_block(); a proxy does not.
  void begin(uint32_t block) {
    block_ = block;
    first_record_ = run_.image.blocks[block].first;
  }
  void end() { note(Trace::end); }

  // -- Data

  template <class Source, class Sink>
  Stop move(uint64_t bytes, const Source& source, const Sink& sink) {
    return transfer(group_, bytes, source, sink);
  }

  template <class First, class Other, class Sink>
  Stop reduce(ReduceOp op, uint64_t bytes, const First& first, const Other* others, uint32_t n,
              const Sink& sink) {
    const AnyReduced<First, Other> source{reduction(op, run_.dtype).view<First, Other>(), first, others, n};
    return transfer(group_, bytes, source, sink);
  }

  template <class Sink>
  Stop reduce_members(ReduceOp op, uint64_t bytes, const pieces::Members& from, const Sink& sink) {
    const AnyMulti source{reduction(op, run_.dtype).multi, from.data, from.n, from.offset, from.valid};
    return transfer(group_, bytes, source, sink);
  }

  /// Waits until the peers of these operands have entered the run. Only then may their own memory be touched.
  template <Role... R>
  Stop reach(const op::Places<R>&... operands) {
    Stop stop = Stop::none;
    ((stop = stop == Stop::none ? reach_all(operands) : stop), ...);
    return stop;
  }

  // -- Synchronisation

  void sync() { group_.sync(); }

  /// Adds one to the signal of each channel at its peer.
  void post(const op::Ids& channels, bool relaxed) {
    for (uint32_t at = 0; at < channels.n; ++at) {
      Signal* const there = run_.signals_at_peer[channels.first[at]];
      if (there) signal_add(group_, there, 1, relaxed);
    }
  }

  /// Waits for one more post on each channel.
  Stop await(const op::Ids& channels, bool relaxed) {
    // Count first, because blocks that share a channel wait for different posts.
    Stop stop = Stop::none;
    for (uint32_t at = 0; at < channels.n && stop == Stop::none; ++at) {
      const uint32_t channel = channels.first[at];
      const uint64_t goal = add_relaxed(&run_.expected[channel], uint64_t(1)) + 1;
      const Signal& mine = run_.signals[channel];
      expect(goal, &mine.value, int(run_.image.channels[channel].peer));
      stop = wait_until(group_, &mine, Cmp::ge, goal, run_.deadline, relaxed);
    }
    return stop;
  }

  /// Waits until the proxy has done all that was pushed on each channel.
  Stop drain(const op::Ids& channels) {
    Stop stop = Stop::none;
    for (uint32_t at = 0; at < channels.n && stop == Stop::none; ++at) {
      const uint32_t channel = channels.first[at];
      const uint64_t goal = load_relaxed(&run_.pushed[channel]);
      expect(goal, &run_.completed[channel].value, int(run_.rank));
      stop = wait_until(group_, &run_.completed[channel], Cmp::ge, goal, run_.deadline);
    }
    return stop;
  }

  Stop acquire(const op::Ids& semaphores) {
    Stop stop = Stop::none;
    for (uint32_t at = 0; at < semaphores.n && stop == Stop::none; ++at) {
      Semaphore& semaphore = run_.semaphores[semaphores.first[at]];
      expect(1, &semaphore.permits, int(run_.rank));
      stop = semaphore_acquire(group_, &semaphore, run_.deadline);
    }
    return stop;
  }

  void release(const op::Ids& semaphores) {
    for (uint32_t at = 0; at < semaphores.n; ++at) {
      semaphore_release(group_, &run_.semaphores[semaphores.first[at]]);
    }
  }

  /// Waits until all participants have arrived. Tickets only grow; a round ends when its last one is drawn.
  Stop arrive(uint32_t id, uint32_t participants) {
    group_.sync();
    group_.step();
    Signal& barrier = run_.barriers[id];
    const uint64_t ticket = add_acq_rel(&barrier.value, uint64_t(1));
    const uint64_t goal = (ticket / participants + 1) * participants;
    expect(goal, &barrier.value, int(run_.rank));
    return wait_until(group_, &barrier, Cmp::ge, goal, run_.deadline);
  }

  // -- Port channels

  Stop push(Action action, const op::Ids& channels) {
    Stop stop = Stop::none;
    for (uint32_t at = 0; at < channels.n && stop == Stop::none; ++at) {
      stop = push({&run_, action, channels.first[at], {}, {}, {}});
    }
    return stop;
  }

  template <Role S, Role D>
  Stop push(Action action, const op::Ids& channels, const op::Slice& slice, const op::Places<S>& src,
            const op::Places<D>& dst) {
    Stop stop = reach(dst);
    for (uint32_t at = 0; at < channels.n && stop == Stop::none; ++at) {
      const image::Place& from = src[src.n == 1 ? 0 : at];
      const image::Range part = range(from.bytes, slice);
      if (part.first == part.end && !has(action, Action::signal)) continue;
      stop = push({&run_, action, channels.first[at], from, dst[at], part});
    }
    return stop;
  }

 private:
  static constexpr size_t item_bytes = 32;

  static const char* record_name(Opcode code) {
    static constexpr const char* names[] = {
#define CHORALE_OP(name, mnemonic, summary, fields) #name,
#include "chorale/ops.def"
    };
    return names[size_t(code)];
  }

  void note(uint32_t op) {
    if (run_.trace.entries) run_.trace.note(block_, run_.epoch, op, now_ns());
  }

  /// Notes the wait that the report of a hang will name.
  void expect(uint64_t value, const uint64_t* word, int peer) {
    if (host_) host_->set_waiting({name_, op_index_, value, word, peer});
  }

  Stop push(const Trigger& trigger) {
    group_.sync();
    expect(0, nullptr, int(run_.rank));
    add_relaxed(&run_.pushed[trigger.channel], uint64_t(1));
    return run_.fifo->push(group_, run_.deadline, trigger);
  }

  template <Role R>
  Stop reach_all(const op::Places<R>& operands) {
    Stop stop = Stop::none;
    if constexpr (R == Role::RemoteRead || R == Role::RemoteWrite) {
      for (uint32_t at = 0; at < operands.n && stop == Stop::none; ++at)
        stop = reach_buffer(operands[at].buffer);
    } else if constexpr (R == Role::SwitchRead || R == Role::SwitchWrite) {
      const image::Switch& of = run_.image.switches[operands[0].buffer];
      for (uint32_t member = 0; member < of.n && stop == Stop::none; ++member) {
        stop = reach_buffer(run_.image.members[of.first + member]);
      }
    }
    return stop;
  }

  Stop reach_buffer(uint32_t buffer) {
    const image::Buffer& of = run_.image.buffers[buffer];
    // Data for another host waits there until the peer has entered the run.
    if (of.base || !run_.published[of.rank]) return Stop::none;
    // In a stopped world the peer may have left the run and given its memory back.
    const Stop stopped = group_.stopped();
    if (stopped != Stop::none) return stopped;
    const uint64_t* const epoch = &run_.published[of.rank]->epoch;
    const auto entered = [this, epoch] { return load_acquire(epoch) >= run_.epoch; };
    if (entered()) return Stop::none;
    expect(run_.epoch, epoch, int(of.rank));
    return spin_until(group_, run_.deadline, entered);
  }

  const Run& run_;
  Group group_;
  BlockHost* host_;
  char* room_;
  size_t used_ = 0;
  uint64_t turn_first_ = 0, turn_bytes_ = 0;
  const image::Range* fixed_ = nullptr;
  uint32_t block_ = 0, first_record_ = 0, op_index_ = 0;
  const char* name_ = "";
};

}  // namespace chorale::cpu
