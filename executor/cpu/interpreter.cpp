#include "interpreter.hpp"

#include "coded.hpp"
#include "executor/lowering/packet_form.hpp"
#include "port.hpp"
#include "reduction.hpp"

namespace chorale::cpu {

using lowering::ProgramPlace;
using lowering::ProgramStep;
using lowering::ProgramStepKind;
using lowering::SyncItem;

namespace {

/// Writes to all sinks of a step.
template <class P>
struct Sinks {
  const Mem* plain;
  const Packets<P>* packets;
  uint32_t n_plain, n_packets;

  static constexpr bool by_line = detail::by_line<Packets<P>>;

  void put(uint64_t at, uint64_t bytes, const char* from) const {
    for (uint32_t sink = 0; sink < n_plain; ++sink) plain[sink].put(at, bytes, from);
    for (uint32_t sink = 0; sink < n_packets; ++sink) packets[sink].put(at, bytes, from);
  }
};

/// Counts the places of a step that are sources.
struct Sources {
  uint32_t plain = 0, packets = 0;

  explicit Sources(const ProgramStep& step) {
    switch (step.kind) {
      case ProgramStepKind::copy:
        plain = 1;
        break;
      case ProgramStepKind::coded:
        plain = step.n;
        break;
      case ProgramStepKind::unpack:
        packets = 1;
        break;
      case ProgramStepKind::reduce:
        plain = 1u + step.n;
        break;
      case ProgramStepKind::reduce_packets:
        plain = step.own != 0 ? 1 : 0;
        packets = step.n;
        break;
      default:  // by a switch, from one place to one place
        plain = 1;
        break;
    }
  }
};

template <class P>
constexpr size_t bytes_of_packets = sizeof(Packets<P>) + sizeof(Either<P>);

}  // namespace

/// Gives access to a page of the block's program.
struct Interpreter::Page {
  const lowering::PageHeader& header;
  const ProgramStep* steps;
  const SyncItem* items;
  const ProgramPlace* places;  ///< the plain places, then the packet places
  const uint64_t* strides;     ///< of all places; null: there are no loops
  uint32_t plain;              ///< the number of plain places

  Page(const lowering::PageShape& shape, const char* at)
      : header(*reinterpret_cast<const lowering::PageHeader*>(at)),
        steps(reinterpret_cast<const ProgramStep*>(at + sizeof header)),
        items(reinterpret_cast<const SyncItem*>(at + shape.items_at())),
        places(reinterpret_cast<const ProgramPlace*>(at + shape.plain_at())),
        strides(shape.strides != 0 ? reinterpret_cast<const uint64_t*>(at + shape.strides_at()) : nullptr),
        plain(shape.plain) {}
};

Interpreter::Interpreter(Run& run, uint32_t block, fibers::BlockHost& host, char* memory)
    : run_(run),
      block_(block),
      host_(host),
      group_(block_group(block, run.program->blocks, &host)),
      memory_(memory),
      counts_(reinterpret_cast<lowering::BlockState*>(run.states + size_t(block) * run.program->state_bytes)
                  ->counts()) {}

size_t Interpreter::memory_bytes(const lowering::DeviceProgram& program) {
  static_assert(bytes_of_packets<LL8> == bytes_of_packets<LL128> &&
                bytes_of_packets<LL16> == bytes_of_packets<LL128>);
  return program.most_plain * (sizeof(Mem) + sizeof(Either<LL8>)) +
         program.most_packets * bytes_of_packets<LL8>;
}

Stop Interpreter::run() {
  const Stop stop = lowering::with_packet_form(
      run_.packet, [this](auto form) { return run_pages<typename decltype(form)::type>(); });
  if (run_.trace.entries) run_.trace.note(block_, run_.epoch, Trace::end, now_ns());
  return stop;
}

template <class P>
Stop Interpreter::run_pages() {
  const lowering::DeviceProgram& program = *run_.program;
  const char* at = program.bytes.data() + uint64_t(block_) * program.pages * program.page.bytes();
  for (uint32_t page_number = 0; page_number < program.pages; ++page_number, at += program.page.bytes()) {
    const Page page(program.page, at);
    for (uint32_t number = 0; number < page.header.steps; ++number) {
      const ProgramStep& step = page.steps[number];
      if (step.kind == ProgramStepKind::repeat) {
        host_.moved();  // a turn may be one operation
        const SyncItem::Repeat& loop = page.items[step.first_item].repeat;
        if (++turn_ < loop.turns) {
          number -= uint32_t(loop.steps) + 1;
        } else {
          turn_ = 0;
        }
        continue;
      }
      const Stop stop = step.kind < ProgramStepKind::copy ? control(page, step) : data<P>(page, step);
      if (stop != Stop::none) return stop;
    }
    if (page.header.more == 0) break;
  }
  return Stop::none;
}

/// Tells the host that the block has reached another operation, which counts as progress.
inline void Interpreter::enter(uint32_t op) {
  if (op == op_) return;
  op_ = op;
  host_.moved();
  if (run_.trace.entries) run_.trace.note(block_, run_.epoch, op, now_ns());
}

/// Records the wait, so that the report of a hang can name it.
inline void Interpreter::expect(uint64_t value, const uint64_t* word, int peer) {
  host_.set_waiting({"", op_, value, word, peer});
}

/// Enters an operation that does not wait now.
inline void Interpreter::compute(uint32_t op) {
  if (op == op_) return;
  enter(op);
  expect(uint32_t(run_.epoch), nullptr, -1);
}

// -- Steps without data

Stop Interpreter::control(const Page& page, const ProgramStep& step) {
  const bool awaits = step.kind == ProgramStepKind::await || step.kind == ProgramStepKind::await_relaxed;
  awaits ? enter(step.op) : compute(step.op);
  Stop stop = Stop::none;
  if (step.kind == ProgramStepKind::sync) group_.sync();
  for (uint32_t at = 0; at < step.n && stop == Stop::none; ++at) {
    const SyncItem& item = page.items[step.first_item + at];
    switch (step.kind) {
      case ProgramStepKind::post:
      case ProgramStepKind::post_relaxed:
        signal_add(group_, item.post.at_peer, 1, step.kind == ProgramStepKind::post_relaxed);
        break;
      case ProgramStepKind::await:
      case ProgramStepKind::await_relaxed:
        stop = await(item.await, step.kind == ProgramStepKind::await_relaxed);
        break;
      case ProgramStepKind::drain: {
        const uint64_t goal = load_relaxed(item.drain.pushed);
        expect(goal, &item.drain.completed->value, int(run_.rank));
        stop = wait_until(group_, item.drain.completed, Cmp::ge, goal, run_.deadline);
        break;
      }
      case ProgramStepKind::acquire:
        expect(1, &item.permit.semaphore->permits, int(run_.rank));
        stop = semaphore_acquire(group_, item.permit.semaphore, run_.deadline);
        break;
      case ProgramStepKind::release:
        semaphore_release(group_, item.permit.semaphore);
        break;
      case ProgramStepKind::barrier:
        stop = arrive(item.barrier);
        break;
      case ProgramStepKind::push:
        stop = push(page, step, item.push);
        break;
      default:
        break;
    }
  }
  return stop;
}

/// Waits for one more post.
Stop Interpreter::await(const SyncItem::Await& item, bool relaxed) {
  enter(item.op);  // adjacent waits are one step, but each has its own operation
  // Count first, because blocks that share a channel wait for different posts.
  const uint64_t goal = item.expected ? add_relaxed(item.expected, uint64_t(1)) + 1 : ++counts_[item.slot];
  expect(goal, &item.mine->value, int(item.peer));
  return wait_until(group_, item.mine, Cmp::ge, goal, run_.deadline, relaxed);
}

/// Waits until all participants have arrived. Tickets only grow; a round ends when its last ticket is drawn.
Stop Interpreter::arrive(const SyncItem::Barrier& item) {
  group_.sync();
  group_.step();
  const uint64_t ticket = add_acq_rel(&item.word->value, uint64_t(1));
  const uint64_t goal = (ticket / item.participants + 1) * item.participants;
  expect(goal, &item.word->value, int(run_.rank));
  return wait_until(group_, item.word, Cmp::ge, goal, run_.deadline);
}

Stop Interpreter::push(const Page& page, const ProgramStep& step, const SyncItem::Push& item) {
  Trigger trigger;
  trigger.run = &run_;
  trigger.channel = item.channel;
  trigger.signal = item.signal != 0;
  if (item.from != ~0u) {
    Stop stop = settle(page, item.from, trigger.from);
    if (stop == Stop::none) stop = settle(page, item.to, trigger.to);
    if (stop != Stop::none) return stop;
    trigger.bytes = step.bytes;
  }
  group_.sync();
  expect(0, nullptr, int(run_.rank));
  add_relaxed(item.pushed, uint64_t(1));
  return run_.fifo->push(group_, run_.deadline, trigger);
}

// -- Steps that move data

template <class P, class Source>
Stop Interpreter::move(const ProgramStep& step, const Source& source, const Mem* plain,
                       const Packets<P>* packets) {
  if (step.packet_sinks == 0 && step.plain_sinks == 1) return transfer(group_, step.bytes, source, plain[0]);
  if (step.packet_sinks == 1 && step.plain_sinks == 0)
    return transfer(group_, step.bytes, source, packets[0]);
  return transfer(group_, step.bytes, source, Sinks<P>{plain, packets, step.plain_sinks, step.packet_sinks});
}

template <class P>
Stop Interpreter::data(const Page& page, const ProgramStep& step) {
  compute(step.op);
  const Sources sources(step);
  const uint32_t n_plain = sources.plain + step.plain_sinks, n_packets = sources.packets + step.packet_sinks;
  Mem* const plain = reinterpret_cast<Mem*>(memory_);
  Packets<P>* const packets = reinterpret_cast<Packets<P>*>(plain + n_plain);
  for (uint32_t place = 0; place < n_plain; ++place) {
    char* address = nullptr;
    const Stop stop = settle(page, step.first_plain + place, address);
    if (stop != Stop::none) return stop;
    new (&plain[place]) Mem(static_cast<void*>(address), page.places[step.first_plain + place].valid);
  }
  for (uint32_t place = 0; place < n_packets; ++place) {
    char* slots = nullptr;
    const Stop stop = settle(page, page.plain + step.first_packets + place, slots);
    if (stop != Stop::none) return stop;
    new (&packets[place]) Packets<P>(static_cast<void*>(slots), uint32_t(run_.epoch), &run_.deadline);
  }
  const Mem* const plain_sinks = plain + sources.plain;
  const Packets<P>* const packet_sinks = packets + sources.packets;
  switch (step.kind) {
    case ProgramStepKind::copy:
      if (step.plain_sinks == 1 && step.packet_sinks == 0 && plain[0].data == plain_sinks[0].data)
        return Stop::none;  // as the proof assumes, so that others may read it meanwhile
      return move<P>(step, plain[0], plain_sinks, packet_sinks);
    case ProgramStepKind::coded: {
      if (step.n == 1 && step.plain_sinks == 1 && plain[0].data == plain_sinks[0].data &&
          plain[0].valid == plain_sinks[0].valid)
        return Stop::none;  // as for copy
      run_coded(group_, step, run_.dtype, plain);
      return Stop::none;
    }
    case ProgramStepKind::unpack:
      return move<P>(step, packets[0], plain_sinks, packet_sinks);
    case ProgramStepKind::reduce: {
      const auto view = reduction(ReduceOp(step.reduce_op), run_.dtype).view<Mem>();
      return move<P>(step, AnyReduced<Mem>{view, plain[0], plain + 1, step.n}, plain_sinks, packet_sinks);
    }
    case ProgramStepKind::reduce_packets: {
      Either<P>* const all = reinterpret_cast<Either<P>*>(packets + n_packets);
      uint32_t n = 0;
      for (uint32_t packet = 0; packet < sources.packets; ++packet) {
        if (step.own == packet + 1) new (&all[n++]) Either<P>{plain, nullptr};
        new (&all[n++]) Either<P>{nullptr, packets + packet};
      }
      if (step.own == sources.packets + 1) new (&all[n++]) Either<P>{plain, nullptr};
      const auto view = reduction(ReduceOp(step.reduce_op), run_.dtype).template view<Either<P>>();
      return move<P>(step, AnyReduced<Either<P>>{view, all[0], all + 1, n - 1}, plain_sinks, packet_sinks);
    }
    default:
      return run_.by_switch(group_, step, plain);
  }
}

// -- Places

/// Computes the address of a place. The address of memory at another host stays a remote::FarPlace.
inline Stop Interpreter::settle(const Page& page, uint32_t place, char*& address) {
  const ProgramPlace& of = page.places[place];
  if (((of.at & ProgramPlace::in) && !run_.in) || ((of.at & ProgramPlace::out) && !run_.out)) {
    address = nullptr;
    return Stop::none;
  }
  address = of.settled(run_.epoch, run_.in, run_.out, run_.skip, run_.gaps);
  if (page.strides) {
    address = reinterpret_cast<char*>(reinterpret_cast<uint64_t>(address) + turn_ * page.strides[place]);
  }
  return remote::FarPlace::is(reinterpret_cast<uint64_t>(address)) ? settle_at_peer(address) : Stop::none;
}

/// Replaces a remote::FarPlace by the address that the peer published for this run, if it is on this host.
Stop Interpreter::settle_at_peer(char*& address) {
  const remote::FarPlace named = remote::FarPlace::of(address);
  if (!run_.published[named.rank]) return Stop::none;
  const Stop stop = reach(named.rank);
  if (stop != Stop::none) return stop;
  const Published& there = *run_.published[named.rank];
  const bool input = named.buffer == uint32_t(BufferKind::input);
  char* const base = run_.address(named.rank, load_relaxed(input ? &there.in : &there.out));
  const uint64_t gap = load_relaxed(input ? &there.in_gap : &there.out_gap);
  address = base ? base + lowering::Gaps::add(named.offset, run_.gaps.part_bytes, gap) : nullptr;
  return Stop::none;
}

/// Waits until a peer on this host has entered the run. Only after that may this rank touch the peer's input
/// and output.
Stop Interpreter::reach(uint32_t rank) {
  // In a stopped world the peer may have left the run and freed its memory.
  const Stop stopped = group_.stopped();
  if (stopped != Stop::none) return stopped;
  const uint64_t* const epoch = &run_.published[rank]->epoch;
  const auto entered = [this, epoch] { return load_acquire(epoch) >= run_.epoch; };
  if (entered()) return Stop::none;
  expect(run_.epoch, epoch, int(rank));
  return spin_until(group_, run_.deadline, entered);
}

}  // namespace chorale::cpu
