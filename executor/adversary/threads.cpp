// This part of Engine takes the steps of threads of blocks.

#include "chorale/combine.hpp"
#include "chorale/splitmix64.hpp"
#include "engine.hpp"

namespace chorale::adversary {
namespace {

/// Encodes a value, or decodes it. What is read by another codec than it was written by is then wrong.
Value coded(Value value, Ref ref, const Instruction& what) {
  if (ref & is_coded) value.value ^= mix64(what.codec);
  return value;
}

}  // namespace

Engine::Did Engine::step_thread(uint32_t thread) {
  ThreadState& state = threads_[thread];
  if (state.pc == state.end) return Did::end;
  const Instruction& what = program_.instructions[state.pc];
  Did did = Did::step;
  switch (what.code) {
    case Code::move:
      return step_move(thread, what);
    case Code::sync:
      return sync(thread);
    case Code::post:
      post(thread, what);
      break;
    case Code::push:
      push(thread, what);
      break;
    case Code::release: {
      memory_.release(accessor(thread), false);
      Permits& permits = semaphores_[what.id];
      ++permits.count;
      permits.view = memory_.now();
      wake(permits.waiting);
      break;
    }
    case Code::await:
      did = await(thread, what);
      break;
    case Code::acquire:
      did = acquire(thread, what);
      break;
    case Code::arrive:
      did = arrive(thread, what);
      break;
    case Code::drain:
      did = drain(thread, what);
      break;
  }
  if (did != Did::step) return did;
  ++state.pc;
  state.begun = false;
  return Did::step;
}

/// Does one load, or all stores, of a move.
Engine::Did Engine::step_move(uint32_t thread, const Instruction& what) {
  ThreadState& state = threads_[thread];
  const uint32_t flag = epoch(rank_of(thread));
  const Accessor by = accessor(thread);
  if (state.source < what.sources) {
    const Ref ref = program_.refs[what.first + state.source];
    Value value;
    if (ref != no_cell) {
      if (!program_.is_packet[cell_of(ref)]) {
        value = coded(memory_.load(by, ref & ~is_coded, turns_.draw()), ref, what);
      } else if (!memory_.load_packet(by, ref, flag, value)) {
        wait_for_packet(thread, cell_of(ref));
        return Did::park;
      }
    }
    if (state.source++ == 0) {
      state.sum = value;
    } else {
      state.sum.value = reference::combine(what.op, state.sum.value, value.value);
      state.sum.taint |= value.taint;
    }
    return Did::step;
  }
  for (uint32_t dest = 0; dest < what.dests; ++dest) {
    const Ref ref = program_.refs[what.first + what.sources + dest];
    memory_.store(by, ref & ~is_coded, coded(state.sum, ref, what), flag);
  }
  state.source = 0;
  ++state.pc;
  return Did::step;
}

Engine::Did Engine::sync(uint32_t thread) {
  const uint32_t position = program_.threads[thread].block;
  const Block& block = program_.blocks[position];
  BlockState& state = blocks_[position];
  ++threads_[thread].pc;
  state.view = std::max(state.view, threads_[thread].view);
  if (++state.arrived < block.threads) return Did::park;
  state.arrived = 0;
  ++state.segment;
  for (uint32_t other = block.first; other < block.first + block.threads; ++other) {
    threads_[other].view = state.view;
    turns_.activate(other);
  }
  return Did::step;
}

void Engine::raise(Counter& counter, uint32_t view, uint32_t start) {
  ++counter.count;
  const bool first = counter.views.empty();
  counter.views.push_back(first ? view : std::max(view, counter.views.back()));
  counter.starts.push_back(first ? start : std::max(start, counter.starts.back()));
  wake(counter.waiting);
}

void Engine::post(uint32_t thread, const Instruction& what) {
  if (what.id == none) return;
  const uint32_t start = ranks_[rank_of(thread)].start;
  if (!what.relaxed) memory_.release(accessor(thread), true);
  // A relaxed post makes visible only what was visible when its launch began, see docs/memory-model.md.
  raise(signals_[what.id], what.relaxed ? start : memory_.now(), start);
}

Engine::Did Engine::await(uint32_t thread, const Instruction& what) {
  ThreadState& state = threads_[thread];
  Counter& signal = signals_[what.id];
  if (!state.begun) {
    // Count each wait first, because blocks that share a channel wait for different posts.
    state.goal = ++signal.expected;
    state.begun = true;
  }
  if (signal.count < state.goal) {
    signal.waiting.push_back(thread);
    return Did::park;
  }
  const auto& shown = what.relaxed ? signal.starts : signal.views;
  state.view = std::max(state.view, shown[state.goal - 1]);
  return Did::step;
}

Engine::Did Engine::acquire(uint32_t thread, const Instruction& what) {
  Permits& permits = semaphores_[what.id];
  if (permits.count == 0) {
    permits.waiting.push_back(thread);
    return Did::park;
  }
  --permits.count;
  threads_[thread].view = std::max(threads_[thread].view, permits.view);
  return Did::step;
}

Engine::Did Engine::arrive(uint32_t thread, const Instruction& what) {
  ThreadState& state = threads_[thread];
  Counter& barrier = barriers_[what.id];
  if (!state.begun) {
    state.begun = true;
    memory_.release(accessor(thread), false);
    state.goal = (barrier.count / what.participants + 1) * what.participants;
    raise(barrier, memory_.now(), 0);
  }
  if (barrier.count < state.goal) {
    barrier.waiting.push_back(thread);
    return Did::park;
  }
  state.view = std::max(state.view, barrier.views[state.goal - 1]);
  return Did::step;
}

Engine::Did Engine::drain(uint32_t thread, const Instruction& what) {
  ThreadState& state = threads_[thread];
  QueueState& queue = queues_[what.id];
  if (!state.begun) {
    state.begun = true;
    state.goal = queue.transfers.size();
  }
  if (queue.read >= state.goal) return Did::step;
  queue.waiting.push_back(thread);
  return Did::park;
}

void Engine::push(uint32_t thread, const Instruction& what) {
  const uint32_t rank = rank_of(thread);
  memory_.release(accessor(thread), true);
  const Push& of = program_.pushes[what.id];
  QueueState& queue = queues_[of.queue];
  Transfer& transfer = queue.transfers.emplace_back();
  transfer.push = what.id;
  transfer.flag = epoch(rank);
  transfer.first_value = uint32_t(queue.values.size());
  transfer.offset = of.cells ? turns_.draw().below(of.cells) : 0;
  transfer.start = ranks_[rank].start;
  queue.values.resize(queue.values.size() + of.cells);
  ++ranks_[rank].reads_left;
  turns_.activate(first_read_ + of.queue);
}

void Engine::end_thread(uint32_t thread) {
  RankState& rank = ranks_[rank_of(thread)];
  if (--rank.threads_left == 0 && rank.reads_left == 0) turns_.activate(first_rank_ + rank_of(thread));
}

}  // namespace chorale::adversary
