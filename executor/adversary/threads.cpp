// This part of Engine takes the steps of threads of blocks.

#include "chorale/combine.hpp"
#include "engine.hpp"

namespace chorale::adversary {

Engine::Did Engine::step_lane(uint32_t lane) {
  LaneState& state = lanes_[lane];
  if (state.pc == state.end) return Did::end;
  const Instruction& what = program_.instructions[state.pc];
  Did did = Did::step;
  switch (what.code) {
    case Code::move:
      return step_move(lane, what);
    case Code::sync:
      return sync(lane);
    case Code::post:
      post(lane, what);
      break;
    case Code::push:
      push(lane, what);
      break;
    case Code::release: {
      memory_.release(thread(lane), false);
      Permits& permits = semaphores_[what.id];
      ++permits.count;
      permits.view = memory_.now();
      wake(permits.waiting);
      break;
    }
    case Code::await:
      did = await(lane, what);
      break;
    case Code::acquire:
      did = acquire(lane, what);
      break;
    case Code::arrive:
      did = arrive(lane, what);
      break;
    case Code::drain:
      did = drain(lane, what);
      break;
  }
  if (did != Did::step) return did;
  ++state.pc;
  state.begun = false;
  return Did::step;
}

/// Does one load, or all stores, of a move.
Engine::Did Engine::step_move(uint32_t lane, const Instruction& what) {
  LaneState& state = lanes_[lane];
  const uint32_t flag = epoch(rank_of(lane));
  const Thread by = thread(lane);
  if (state.source < what.sources) {
    const Ref ref = program_.refs[what.first + state.source];
    Value value;
    if (ref != no_cell) {
      if (!program_.is_packet[cell_of(ref)]) {
        value = memory_.load(by, ref, turns_.draw());
      } else if (!memory_.load_packet(by, ref, flag, value)) {
        wait_for_packet(lane, cell_of(ref));
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
    memory_.store(by, program_.refs[what.first + what.sources + dest], state.sum, flag);
  }
  state.source = 0;
  ++state.pc;
  return Did::step;
}

Engine::Did Engine::sync(uint32_t lane) {
  const uint32_t position = program_.lanes[lane].block;
  const Block& block = program_.blocks[position];
  BlockState& state = blocks_[position];
  ++lanes_[lane].pc;
  state.view = std::max(state.view, lanes_[lane].view);
  if (++state.arrived < block.lanes) return Did::park;
  state.arrived = 0;
  ++state.segment;
  for (uint32_t other = block.first; other < block.first + block.lanes; ++other) {
    lanes_[other].view = state.view;
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

void Engine::post(uint32_t lane, const Instruction& what) {
  if (what.id == none) return;
  const uint32_t start = ranks_[rank_of(lane)].start;
  if (!what.relaxed) memory_.release(thread(lane), true);
  // A relaxed post makes visible only what was visible when its launch began, see docs/memory-model.md.
  raise(signals_[what.id], what.relaxed ? start : memory_.now(), start);
}

Engine::Did Engine::await(uint32_t lane, const Instruction& what) {
  LaneState& state = lanes_[lane];
  Counter& signal = signals_[what.id];
  if (!state.begun) {
    // Count each wait first, because blocks that share a channel wait for different posts.
    state.goal = ++signal.expected;
    state.begun = true;
  }
  if (signal.count < state.goal) {
    signal.waiting.push_back(lane);
    return Did::park;
  }
  const auto& shown = what.relaxed ? signal.starts : signal.views;
  state.view = std::max(state.view, shown[state.goal - 1]);
  return Did::step;
}

Engine::Did Engine::acquire(uint32_t lane, const Instruction& what) {
  Permits& permits = semaphores_[what.id];
  if (permits.count == 0) {
    permits.waiting.push_back(lane);
    return Did::park;
  }
  --permits.count;
  lanes_[lane].view = std::max(lanes_[lane].view, permits.view);
  return Did::step;
}

Engine::Did Engine::arrive(uint32_t lane, const Instruction& what) {
  LaneState& state = lanes_[lane];
  Counter& barrier = barriers_[what.id];
  if (!state.begun) {
    state.begun = true;
    memory_.release(thread(lane), false);
    state.goal = (barrier.count / what.participants + 1) * what.participants;
    raise(barrier, memory_.now(), 0);
  }
  if (barrier.count < state.goal) {
    barrier.waiting.push_back(lane);
    return Did::park;
  }
  state.view = std::max(state.view, barrier.views[state.goal - 1]);
  return Did::step;
}

Engine::Did Engine::drain(uint32_t lane, const Instruction& what) {
  LaneState& state = lanes_[lane];
  QueueState& queue = queues_[what.id];
  if (!state.begun) {
    state.begun = true;
    state.goal = queue.transfers.size();
  }
  if (queue.read >= state.goal) return Did::step;
  queue.waiting.push_back(lane);
  return Did::park;
}

void Engine::push(uint32_t lane, const Instruction& what) {
  const uint32_t rank = rank_of(lane);
  memory_.release(thread(lane), true);
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

void Engine::end_lane(uint32_t lane) {
  RankState& rank = ranks_[rank_of(lane)];
  if (--rank.lanes_left == 0 && rank.reads_left == 0) turns_.activate(first_rank_ + rank_of(lane));
}

}  // namespace chorale::adversary
