/// \file
/// The interpreter kernel runs device programs: each thread block runs its steps.
#pragma once

#include <cstdint>

#include "batches.cuh"
#include "executor/lowering/far_place.hpp"

namespace chorale::cuda {

constexpr uint32_t most_threads = 512;

/// Holds the data that a block's threads share besides the page.
struct Shared {
  Deadline deadline;
  StopRecord stop;
};

/// Waits until a word is at least `goal`. Called by one thread.
CHORALE_FN Stop wait_word(const Group& group, Shared& shared, const uint64_t* word, uint64_t goal,
                          bool relaxed, uint32_t peer, uint32_t op) {
  const auto came = [word, goal, relaxed]() -> bool {
    return (relaxed ? load_relaxed(word) : load_acquire(word)) >= goal;
  };
  const Stop stop = spin_until(group, shared.deadline, came);
  if (stop != Stop::none) {
    shared.stop.op = op;
    shared.stop.peer = int32_t(peer);
    shared.stop.waits_on_word = 1;
    shared.stop.expected = goal;
    shared.stop.seen = load_relaxed(word);
  }
  return stop;
}

/// Hands one request to the proxy, which sees everything that the block wrote before. Called by one thread.
template <class P>
__device__ __noinline__ Stop push_one(const Launch& launch, Shared& shared, const ProgramStep& step,
                                      const SyncItem::Push& what, const Page<P>& page) {
  const Group group = block_group();
  const PortFifo& fifo = launch.fifo;
  add_relaxed(what.pushed, uint64_t(1));
  const uint64_t ticket = add_relaxed(fifo.head, uint64_t(1));
  const auto room = [&fifo, ticket]() -> bool { return load_acquire(fifo.tail) + fifo.mask + 1 > ticket; };
  const Stop stop = spin_until(group, shared.deadline, room);
  if (stop != Stop::none) return stop;
  PortTrigger& slot = fifo.slots[ticket & fifo.mask];
  const bool data = what.from != ~0u;
  slot.from = data ? page.plain[what.from].data : nullptr;
  slot.to = data ? page.plain[what.to].data : nullptr;
  slot.bytes = data ? step.bytes : 0;
  slot.client = fifo.client;
  slot.channel = what.channel;
  slot.signal = what.signal;
  store_release(&slot.turn, ticket + 1);
  return Stop::none;
}

/// Runs a step that moves no data. Each item has its own thread, so posts and waits of a step run in
/// parallel.
template <class P>
CHORALE_FN Stop run_control(const Launch& launch, const Group& group, Shared& shared, uint64_t* counts,
                            const ProgramStep& step, const Page<P>& page) {
  if (step.kind != ProgramStepKind::post_relaxed && step.kind != ProgramStepKind::await &&
      step.kind != ProgramStepKind::await_relaxed) {
    group.sync();
  }
  if (step.kind == ProgramStepKind::sync || step.kind == ProgramStepKind::loop) return Stop::none;
  Stop stop = Stop::none;
  for (uint32_t at = group.rank; at < step.n; at += group.size) {
    const SyncItem& item = page.items[step.first_item + at];
    Stop mine = Stop::none;
    switch (step.kind) {
      case ProgramStepKind::post:
        post_release(&item.post.at_peer->value, uint64_t(1));
        break;
      case ProgramStepKind::post_relaxed:
        post_relaxed(&item.post.at_peer->value, uint64_t(1));
        break;
      case ProgramStepKind::await:
      case ProgramStepKind::await_relaxed: {
        // Count first, because blocks that share a channel wait for different posts.
        const uint64_t goal =
            1 + (item.await.expected
                     ? add_relaxed(item.await.expected, uint64_t(1))
                     : uint64_t(
                           atomicAdd(reinterpret_cast<unsigned long long*>(counts + item.await.slot), 1ull)));
        mine = wait_word(group, shared, &item.await.mine->value, goal,
                         step.kind == ProgramStepKind::await_relaxed, item.await.peer, item.await.op);
        break;
      }
      case ProgramStepKind::drain:
        mine = wait_word(group, shared, &item.drain.completed->value, load_relaxed(item.drain.pushed), false,
                         launch.rank, step.op);
        break;
      case ProgramStepKind::push:
        mine = push_one(launch, shared, step, item.push, page);
        break;
      case ProgramStepKind::release:
        add_release(&item.permit.semaphore->permits, uint64_t(1));
        break;
      case ProgramStepKind::barrier: {
        // Tickets only grow. The round ends when its last ticket has been drawn.
        const uint64_t participants = item.barrier.participants;
        const uint64_t ticket = add_acq_rel(&item.barrier.word->value, uint64_t(1));
        mine = wait_word(group, shared, &item.barrier.word->value, (ticket / participants + 1) * participants,
                         false, launch.rank, step.op);
        break;
      }
      default:
        break;
    }
    stop = mine > stop ? mine : stop;
  }
  switch (step.kind) {
    case ProgramStepKind::post:
    case ProgramStepKind::post_relaxed:
    case ProgramStepKind::release:
      return Stop::none;
    case ProgramStepKind::acquire:
      // Acquire permits one after the other, as the plan lists them, so that the order is the same
      // everywhere.
      for (uint32_t at = 0; at < step.n && stop == Stop::none; ++at) {
        stop = semaphore_acquire(group, page.items[step.first_item + at].permit.semaphore, shared.deadline);
      }
      return stop;
    default:
      return group.agree(stop);
  }
}

/// Ends a turn of a loop: `at` is its `repeat`. If turns are left, this moves the settled places of the body
/// on by their strides. Returns the position before that of the next step. Called by all threads.
template <class P>
__device__ __noinline__ uint32_t end_turn(const PageShape& shape, char* room, const ProgramStep* steps,
                                          uint32_t at) {
  SyncItem::Repeat& loop = reinterpret_cast<SyncItem*>(room + shape.items_at())[steps[at].first_item].repeat;
  __syncthreads();
  const uint64_t turns = loop.turns;
  if (turns == 1) return at;
  const uint32_t first = at - uint32_t(loop.steps);
  const uint64_t* const strides = reinterpret_cast<const uint64_t*>(room + shape.strides_at());
  Mem* const plain = reinterpret_cast<Mem*>(room + shape.settled_plain_at());
  Packets<P>* const packets = reinterpret_cast<Packets<P>*>(room + shape.settled_packets_at());
  for (uint32_t place = steps[first].first_plain + threadIdx.x; place < steps[at].first_plain;
       place += blockDim.x) {
    plain[place].data += strides[place];
  }
  for (uint32_t place = steps[first].first_packets + threadIdx.x; place < steps[at].first_packets;
       place += blockDim.x) {
    packets[place].slots =
        reinterpret_cast<P*>(reinterpret_cast<char*>(packets[place].slots) + strides[shape.plain + place]);
  }
  __syncthreads();
  if (threadIdx.x == 0) loop.turns = turns - 1;  // read again only after the barrier that ends the next turn
  return first - 1;
}

/// Adds an entry to the trace.
__device__ __noinline__ inline void mark(const Trace& trace, uint64_t epoch, uint32_t op) {
  if (threadIdx.x == 0) trace.note(blockIdx.x, epoch, op, now_ns());
}

/// Copies a page into shared memory.
CHORALE_FN void fetch_page(const PageShape& shape, char* room, const char* from) {
  for (uint32_t unit = threadIdx.x; unit < shape.bytes() / 16; unit += blockDim.x) {
    reinterpret_cast<uint4*>(room)[unit] = reinterpret_cast<const uint4*>(from)[unit];
  }
}

/// Writes to each rank where it sees this rank's buffers. All threads of block 0 call it.
__device__ __noinline__ inline void publish(const Launch& launch, uint64_t epoch) {
  const Publication& of = launch.publication;
  for (uint32_t peer = threadIdx.x; peer < of.ranks; peer += blockDim.x) {
    Published& there = *of.at_peers[peer];
    store_relaxed(&there.in, of.in[peer]);
    store_relaxed(&there.out, of.out[peer]);
    store_relaxed(&there.in_gap, launch.gaps.in);
    store_relaxed(&there.out_gap, launch.gaps.out);
    store_release(&there.epoch, epoch);
  }
}

/// Replaces each FarPlace on the page with the address that its rank has published. It waits until every rank
/// that the page names has begun its own launch. A timeout names the first step of the page. All threads of
/// the block call it, after a barrier.
CHORALE_FN Stop find_at_peers(const Launch& launch, Shared& shared, char* room, uint64_t epoch) {
  const Group group = block_group();
  const PageShape shape = launch.page;
  ProgramPlace* const places = reinterpret_cast<ProgramPlace*>(room + shape.plain_at());
  Stop stop = Stop::none;
  for (uint32_t at = threadIdx.x; at < shape.plain && stop == Stop::none; at += blockDim.x) {
    const uint64_t sliced = places[at].at & ProgramPlace::sliced, named = places[at].at ^ sliced;
    if (!remote::FarPlace::is(named)) continue;
    const remote::FarPlace place = remote::FarPlace::of(reinterpret_cast<const void*>(named));
    const Published& there = launch.publication.from_peers[place.rank];
    stop = wait_word(group, shared, &there.epoch, epoch, false, place.rank,
                     reinterpret_cast<const ProgramStep*>(room + sizeof(PageHeader))->op);
    if (stop != Stop::none) break;
    const bool input = place.buffer == remote::FarPlace::input;
    const uint64_t base = load_relaxed(input ? &there.in : &there.out);
    const uint64_t gap = load_relaxed(input ? &there.in_gap : &there.out_gap);
    places[at].at = (base + Gaps::add(place.offset, launch.gaps.part_bytes, gap)) | sliced;
  }
  return group.agree(stop);
}

/// Computes the addresses of a fetched page's places. It waits until the peers whose buffers the page names
/// have begun the launch. The block must synchronise between fetching and this call, and again before it runs
/// the page.
template <class P>
__device__ __noinline__ Stop settle_page(const Launch& launch, Shared& shared, char* room, uint64_t epoch) {
  Stop stop = Stop::none;
  if (launch.publication.from_peers) stop = find_at_peers(launch, shared, room, epoch);
  const PageShape shape = launch.page;
  const ProgramPlace* const places = reinterpret_cast<const ProgramPlace*>(room + shape.plain_at());
  Mem* const plain = reinterpret_cast<Mem*>(room + shape.settled_plain_at());
  Packets<P>* const packets = reinterpret_cast<Packets<P>*>(room + shape.settled_packets_at());
  for (uint32_t at = threadIdx.x; at < shape.plain + shape.packets; at += blockDim.x) {
    // Packets follow the plain places.
    const ProgramPlace place = places[at];
    void* const address = place.settled(epoch, launch.in, launch.out, launch.skip, launch.gaps);
    if (at < shape.plain) {
      plain[at] = Mem(address, place.valid);
    } else {
      packets[at - shape.plain] = Packets<P>(address, uint32_t(epoch), &shared.deadline);
    }
  }
  return stop;
}

/// Gives access to a settled page.
template <class P>
CHORALE_FN Page<P> page_in(const PageShape& shape, const char* room) {
  return {reinterpret_cast<const ProgramStep*>(room + 16),
          reinterpret_cast<const SyncItem*>(room + shape.items_at()),
          reinterpret_cast<const Mem*>(room + shape.settled_plain_at()),
          reinterpret_cast<const Packets<P>*>(room + shape.settled_packets_at())};
}

/// Leaves the reason why a block had to stop. Called by one thread at the end of the block.
CHORALE_FN void leave_stop(const Launch& launch, const StopRecord& stop, uint32_t op, uint64_t epoch,
                           Stop why) {
  StopRecord& to = launch.stops[blockIdx.x];
  to.op = stop.op != ~0u ? stop.op : op;
  to.peer = stop.peer;
  to.waits_on_word = stop.waits_on_word;
  to.expected = stop.waits_on_word ? stop.expected : epoch;
  to.seen = stop.seen;
  fence_system();
  store_relaxed(&to.reason, uint32_t(why));
}

/// Adds no steps to those in this header and in data_steps.cuh.
struct NoMoreSteps {
  static CHORALE_FN constexpr bool has(ProgramStepKind) { return false; }

  template <class T, class P>
  static CHORALE_FN Stop run(const ProgramStep&, const Page<P>&, uint32_t) {
    return Stop::none;
  }
};

/// Runs the programs. T is the element type, or void in a kernel for plans that do not reduce. P is the
/// packet form. More has further steps. Dynamic shared memory holds the block's state, then a page.
template <class T, class P, class More = NoMoreSteps>
__global__ void __launch_bounds__(most_threads, 1) interpret(const __grid_constant__ Launch launch) {
  extern __shared__ uint4 room[];
  __shared__ Shared shared;
  const Group group = block_group();
  char* const state_at = launch.states + uint64_t(blockIdx.x) * launch.state_bytes;
  const char* pages = launch.program + uint64_t(blockIdx.x) * launch.pages * launch.page.bytes();

  // The block fetches its first page while earlier work in the stream still runs, because no launch changes
  // the page. Everything else waits until that work has ended.
  const uint32_t state_units = launch.state_bytes / 16;
  char* const page_at = reinterpret_cast<char*>(room + state_units);
  fetch_page(launch.page, page_at, pages);
  if (threadIdx.x == 0) {
    shared.deadline = {launch.abort, launch.timeout_ns, 0};
    shared.stop = StopRecord{};
    shared.stop.op = ~0u;
  }
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const BlockState state = *reinterpret_cast<const BlockState*>(state_at);
  if (launch.next_beside) asm volatile("griddepcontrol.launch_dependents;");
  const uint64_t epoch = state.epoch + 1;
  for (uint32_t unit = threadIdx.x; unit < state_units; unit += blockDim.x) {
    room[unit] = reinterpret_cast<const uint4*>(state_at)[unit];
  }
  __syncthreads();
  if (state.stopped != 0) return;
  if (launch.publication.ranks != 0 && blockIdx.x == 0) publish(launch, epoch);
  const uint32_t misaligned = (reinterpret_cast<uint64_t>(launch.in) % unit_bytes != 0 ? 1 : 0) |
                              (reinterpret_cast<uint64_t>(launch.out) % unit_bytes != 0 ? 2 : 0);
  uint64_t* const counts = reinterpret_cast<BlockState*>(room)->counts();

  Stop stop = Stop::none;
  uint32_t op = ~0u;
  for (;;) {
    stop = settle_page<P>(launch, shared, page_at, epoch);
    const Page<P> page = page_in<P>(launch.page, page_at);
    __syncthreads();
    const PageHeader header = *reinterpret_cast<const PageHeader*>(page_at);
    for (uint32_t at = 0; at < header.steps && stop == Stop::none; ++at) {
      const ProgramStep& step = page.steps[at];
      if (launch.trace.entries && step.op != op) mark(launch.trace, epoch, step.op);
      op = step.op;
      if (step.kind == ProgramStepKind::repeat) {
        at = end_turn<P>(launch.page, page_at, page.steps, at);
      } else if (step.kind < ProgramStepKind::copy) {
        stop = run_control(launch, group, shared, counts, step, page);
      } else if (More::has(step.kind)) {
        stop = More::template run<T, P>(step, page, misaligned);
      } else if (step.batch > 1 && step.whole && misaligned == 0 &&
                 step.bytes < uint64_t(group.size) * unit_bytes) {
        stop = run_batch<P>(group, &step, page, shared.stop.op);
        at += step.batch - 1;
      } else {
        stop = run_data<T, P>(group, step, page, misaligned);
      }
    }
    if (stop != Stop::none || header.more == 0) break;
    pages += launch.page.bytes();
    __syncthreads();
    fetch_page(launch.page, page_at, pages);
    __syncthreads();
  }

  if (!launch.next_beside) asm volatile("griddepcontrol.launch_dependents;");
  __syncthreads();
  if (launch.trace.entries) mark(launch.trace, epoch, Trace::end);
  if (threadIdx.x == 0) {
    BlockState* const kept = reinterpret_cast<BlockState*>(room);
    kept->epoch = stop == Stop::none ? epoch : state.epoch;
    kept->stopped = stop != Stop::none;
    if (stop != Stop::none) leave_stop(launch, shared.stop, op, epoch, stop);
  }
  __syncthreads();
  for (uint32_t unit = threadIdx.x; unit < state_units; unit += blockDim.x) {
    reinterpret_cast<uint4*>(state_at)[unit] = room[unit];
  }
}

}  // namespace chorale::cuda
