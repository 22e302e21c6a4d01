/// \file
/// The GPU's machine: a thread block of the plan is a thread block of CUDA. See semantics.hpp.
#pragma once

#include "../interpreter/semantics.hpp"
#include "chorale/device/engine.hpp"
#include "launch.hpp"

namespace chorale::cuda {

constexpr uint32_t item_bytes = 32;  ///< of a list

/// What a block's threads share while it runs.
struct Shared {
  image::Image image;
  image::Block block;
  const ChannelEnd* channels;
  uint64_t* counts;  ///< by channel: posts waited for, of the channels that this block alone waits on
  Deadline deadline;
  StopRecord stop;
};

/// transfer() by the block, once for each pair of types: inlined into every operation that moves data it would make
/// a kernel that takes minutes to build.
template <class Source, class Sink>
__device__ __noinline__ Stop transfer_by_block(uint64_t bytes, Source source, Sink sink) {
  return transfer(block_group(), bytes, source, sink);
}

/// T: the element type, or void in a kernel for plans that do not reduce. P: the form of packets.
template <class T, class P>
class Machine {
 public:
  __device__ Machine(const Launch& launch, Shared& shared, char* lists, uint64_t epoch, const Group& group)
      : launch_(launch), shared_(shared), lists_(lists), epoch_(epoch), group_(group) {}

  CHORALE_FN const image::Image& image() const { return shared_.image; }
  CHORALE_FN uint32_t flag() const { return uint32_t(epoch_); }
  CHORALE_FN const Deadline* deadline() const { return &shared_.deadline; }
  CHORALE_FN uint64_t bank(uint64_t bytes) const { return epoch_ % 2 ? 0 : bytes; }
  CHORALE_FN uint64_t packet_bank(uint64_t bytes) const { return bank(bytes); }

  CHORALE_FN char* base(uint32_t buffer) const {
    if (buffer == 0) return launch_.in;
    if (buffer == 1) return launch_.out;
    return shared_.image.buffers[buffer].base;
  }

  CHORALE_FN image::Range range(uint64_t bytes, const op::Slice& slice) const {
    if (turn_bytes_ == 0 && slice.size < 2) return {0, bytes};
    return image::range_of(bytes, turn_first_, turn_bytes_, slice.index, slice.size, shared_.image.alignment);
  }
  CHORALE_FN void turn(uint64_t first, uint64_t bytes) {
    turn_first_ = first;
    turn_bytes_ = bytes;
  }

  template <class L, class Item>
  CHORALE_FN L* list(uint32_t n, const Item& item) {
    static_assert(sizeof(L) <= item_bytes && std::is_trivially_destructible<L>::value, "an item of a list");
    L* const items = reinterpret_cast<L*>(lists_ + used_);
    used_ += n * item_bytes;
    group_.sync();  // the lists of earlier operations have been read
    for (uint32_t at = group_.rank; at < n; at += group_.size) new (&items[at]) L(item(at));
    group_.sync();
    return items;
  }
  CHORALE_FN void release_lists() { used_ = 0; }

  template <class F>
  CHORALE_FN Stop with_packet(const F& f) const {
    return f(TypeTag<P>{});
  }

  CHORALE_FN void enter(uint32_t record) {
    record_ = record;
    if (launch_.trace.entries) mark(record);
  }

  /// An entry of the trace.
  __device__ __noinline__ void mark(uint32_t op) const {
    group_.sync();
    if (!group_.leader()) return;
    // The last launches stay: the ring is addressed by what only grows.
    const Trace& trace = launch_.trace;
    const uint32_t records = shared_.block.n + 1;
    const uint32_t rings = trace.per_block / records;
    if (rings == 0) return;
    const uint32_t at = uint32_t(epoch_ % rings) * records + (op == ~0u ? shared_.block.n : op);
    trace.entries[uint64_t(group_.block) * trace.per_block + at] = {now_ns(), op, uint32_t(epoch_)};
  }

  // -- Data
  // ---------------------------------------------------------------------------------------------------

  template <class Source, class Sink>
  CHORALE_FN Stop move(uint64_t bytes, const Source& source, const Sink& sink) {
    return transfer_by_block(bytes, source, sink);
  }

  template <class Other, class Sink>
  CHORALE_FN Stop reduce(ReduceOp op, uint64_t bytes, const Mem& first, const Other* others, uint32_t n,
                         const Sink& sink) {
    return with_op(op, [&](auto tag) {
      using R = Reduced<decltype(tag)::value, T, Mem, Other>;
      return transfer_by_block(bytes, R{first, others, n}, sink);
    });
  }

  template <class Sink>
  CHORALE_FN Stop reduce_members(ReduceOp op, uint64_t bytes, const pieces::Members& from, const Sink& sink) {
    return with_op(op, [&](auto tag) {
      using R = Multi<decltype(tag)::value, T>;
      return transfer_by_block(bytes, R{from.data, from.n, from.offset, from.valid}, sink);
    });
  }

  /// Peers' memory was mapped when the plan was bound.
  template <Role... R>
  CHORALE_FN Stop reach(const op::Places<R>&...) const {
    return Stop::none;
  }

  // -- Synchronisation
  // ----------------------------------------------------------------------------------------

  CHORALE_FN void sync() { group_.sync(); }

  /// A thread a channel: the posts leave together.
  CHORALE_FN void post(const op::Ids& channels, bool relaxed) {
    if (!relaxed) group_.sync();
    for (uint32_t at = group_.rank; at < channels.n; at += group_.size) {
      Signal* const there = shared_.channels[channels.first[at]].at_peer;
      if (!there) continue;
      if (relaxed) {
        post_relaxed(&there->value, uint64_t(1));
      } else {
        post_release(&there->value, uint64_t(1));
      }
    }
  }

  CHORALE_FN Stop await(const op::Ids& channels, bool relaxed) {
    Stop stop = Stop::none;
    for (uint32_t at = group_.rank; at < channels.n; at += group_.size) {
      const uint32_t id = channels.first[at];
      const ChannelEnd& end = shared_.channels[id];
      const uint64_t goal = end.expected ? add_relaxed(end.expected, uint64_t(1)) + 1
                                         : atomicAdd(reinterpret_cast<unsigned long long*>(&shared_.counts[id]), 1ull) + 1;
      const Stop mine = wait_word(&end.mine->value, goal, relaxed, int32_t(end.peer));
      stop = mine > stop ? mine : stop;
    }
    return group_.agree(stop);
  }

  /// Waits until the proxy has done all that was pushed on each channel.
  CHORALE_FN Stop drain(const op::Ids& channels) {
    group_.sync();
    Stop stop = Stop::none;
    for (uint32_t at = group_.rank; at < channels.n; at += group_.size) {
      const ChannelEnd& end = shared_.channels[channels.first[at]];
      const Stop mine = wait_word(&end.completed->value, load_relaxed(end.pushed), false, int32_t(launch_.rank));
      stop = mine > stop ? mine : stop;
    }
    return group_.agree(stop);
  }

  CHORALE_FN Stop acquire(const op::Ids& semaphores) {
    Stop stop = Stop::none;
    for (uint32_t at = 0; at < semaphores.n && stop == Stop::none; ++at) {
      stop = semaphore_acquire(group_, &launch_.semaphores[semaphores.first[at]], shared_.deadline);
    }
    return stop;
  }

  CHORALE_FN void release(const op::Ids& semaphores) {
    for (uint32_t at = 0; at < semaphores.n; ++at) {
      semaphore_release(group_, &launch_.semaphores[semaphores.first[at]]);
    }
  }

  /// Tickets only grow: the round is over when the last ticket of it has been drawn.
  CHORALE_FN Stop arrive(uint32_t id, uint32_t participants) {
    group_.sync();
    Stop stop = Stop::none;
    if (group_.leader()) {
      uint64_t* const word = &launch_.barriers[id].value;
      const uint64_t ticket = add_acq_rel(word, uint64_t(1));
      stop = wait_word(word, (ticket / participants + 1) * participants, false, int32_t(launch_.rank));
    }
    return group_.agree(stop);
  }

  // -- Port channels
  // ------------------------------------------------------------------------------------------

  CHORALE_FN Stop push(Action action, const op::Ids& channels) {
    group_.sync();
    Stop stop = Stop::none;
    for (uint32_t at = group_.rank; at < channels.n; at += group_.size) {
      const Stop mine = push_one(channels.first[at], nullptr, nullptr, 0, has(action, Action::signal));
      stop = mine > stop ? mine : stop;
    }
    return group_.agree(stop);
  }

  template <Role S, Role D>
  CHORALE_FN Stop push(Action action, const op::Ids& channels, const op::Slice& slice, const op::Places<S>& src,
                       const op::Places<D>& dst) {
    if constexpr (D == Role::RemotePacketWrite) {
      // Packets say themselves that they have come, so nothing orders them behind the proxy: the block stores
      // them, as through a memory channel.
      if (has(action, Action::pack)) return copy_to_packets(*this, slice, src, dst);
      return forward_packets(*this, slice, src, dst);
    } else {
      group_.sync();
      Stop stop = Stop::none;
      for (uint32_t at = group_.rank; at < channels.n; at += group_.size) {
        const uint32_t from = src.n == 1 ? 0 : at;
        const image::Range part = range(src[from].bytes, slice);
        const bool signal = has(action, Action::signal);
        // The signal goes behind the last piece.
        uint64_t bytes;
        uint64_t position = part.first;
        do {
          bytes = part.end - position;
          const op::Places<S> one{&src[from], 1};
          const op::Places<D> other{&dst[at], 1};
          bytes = pieces::within(*this, other, position, pieces::within(*this, one, position, bytes));
          const bool last = position + bytes >= part.end;
          const Mem source = pieces::memory(*this, one, 0, position), sink = pieces::memory(*this, other, 0, position);
          uint64_t exist = source.valid < sink.valid ? source.valid : sink.valid;
          exist = source.data && sink.data ? (bytes < exist ? bytes : exist) : 0;
          if (exist != 0 || (last && signal)) {
            const Stop mine = push_one(channels.first[at], source.data, sink.data, exist, last && signal);
            stop = mine > stop ? mine : stop;
          }
          position += bytes;
        } while (position < part.end && stop == Stop::none);
      }
      return group_.agree(stop);
    }
  }

  /// After the last record, or a stop: what the host may want to know.
  CHORALE_FN void leave(Stop stop) {
    if (launch_.trace.entries) mark(~0u);
    if (stop == Stop::none || !group_.leader()) return;
    StopRecord& to = launch_.stops[group_.block];
    const StopRecord& of = shared_.stop;
    to.op = record_;
    to.peer = of.peer;
    to.waits_on_word = of.waits_on_word;
    to.expected = of.waits_on_word ? of.expected : epoch_;
    to.seen = of.seen;
    to.epoch = epoch_;
    fence_system();
    store_relaxed(&to.reason, uint32_t(stop));
  }

 private:
  template <ReduceOp Op>
  struct OpTag {
    static constexpr ReduceOp value = Op;
  };

  template <class F>
  CHORALE_FN static Stop with_op(ReduceOp op, const F& f) {
    if constexpr (!std::is_void<T>::value) {
      switch (op) {
        case ReduceOp::sum:
        case ReduceOp::avg:  // the division comes after the plan
          return f(OpTag<ReduceOp::sum>{});
        case ReduceOp::min:
          return f(OpTag<ReduceOp::min>{});
        case ReduceOp::max:
          return f(OpTag<ReduceOp::max>{});
        case ReduceOp::prod:
          return f(OpTag<ReduceOp::prod>{});
      }
    }
    return Stop::none;
  }

  /// Of one thread: waits until a word is at least `goal`.
  CHORALE_FN Stop wait_word(const uint64_t* word, uint64_t goal, bool relaxed, int32_t peer) const {
    const auto came = [word, goal, relaxed]() -> bool {
      return (relaxed ? load_relaxed(word) : load_acquire(word)) >= goal;
    };
    const Stop stop = spin_until(group_, shared_.deadline, came);
    if (stop != Stop::none) {
      shared_.stop.peer = peer;
      shared_.stop.waits_on_word = 1;
      shared_.stop.expected = goal;
      shared_.stop.seen = load_relaxed(word);
    }
    return stop;
  }

  /// Of one thread: hands one thing to the proxy. What the block wrote before is visible to it.
  CHORALE_FN Stop push_one(uint32_t id, const char* from, char* to, uint64_t bytes, bool signal) const {
    const ChannelEnd& end = shared_.channels[id];
    const PortFifo& fifo = launch_.fifo;
    add_relaxed(end.pushed, uint64_t(1));
    const uint64_t ticket = add_relaxed(fifo.head, uint64_t(1));
    const auto room = [&fifo, ticket]() -> bool { return load_acquire(fifo.tail) + fifo.mask + 1 > ticket; };
    const Stop stop = spin_until(group_, shared_.deadline, room);
    if (stop != Stop::none) return stop;
    PortTrigger& slot = fifo.slots[ticket & fifo.mask];
    slot.from = from;
    slot.to = to;
    slot.bytes = bytes;
    slot.client = fifo.client;
    slot.channel = end.channel;
    slot.signal = signal;
    store_release(&slot.turn, ticket + 1);
    return Stop::none;
  }

  const Launch& launch_;
  Shared& shared_;
  char* lists_;
  uint64_t epoch_;
  Group group_;
  uint32_t used_ = 0, record_ = 0;
  uint64_t turn_first_ = 0, turn_bytes_ = 0;
};

}  // namespace chorale::cuda
