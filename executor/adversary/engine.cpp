#include "engine.hpp"

#include <fmt/format.h>

namespace chorale::adversary {

Engine::Engine(const Plan& plan, const Program& program, const AdversaryOptions& options)
    : plan_(plan),
      program_(program),
      options_(options),
      expected_(plan, program),
      memory_(program),
      threads_(program.threads.size()),
      blocks_(program.blocks.size()),
      packet_waiting_(program.arena.cells()) {
  first_buffer_ = uint32_t(threads_.size());
  first_read_ = first_buffer_ + memory_.buffers();
  first_write_ = first_read_ + uint32_t(program.queues.size());
  first_rank_ = first_write_ + uint32_t(program.queues.size());
  agents_ = first_rank_ + uint32_t(program.memory.size());
}

Verdict Engine::run(uint64_t seed) {
  if (!expected_.known() && calm_.empty()) {
    calm_.resize(options_.launches, std::vector<std::vector<uint64_t>>(program_.memory.size()));
    calm_verdict_ = execute(0, Mode::calm);
  }
  if (!calm_verdict_.ok()) return calm_verdict_;
  return execute(seed, Mode::drawn);
}

void Engine::begin(uint64_t seed, Mode mode) {
  mode_ = mode;
  verdict_ = {};
  verdict_.seed = seed;
  turns_.begin(agents_, seed);
  const uint32_t stale[] = {0, 2, 8};
  memory_.begin(mode == Mode::calm, mode == Mode::calm ? 0 : stale[turns_.draw().below(3)]);
  blocks_.assign(blocks_.size(), {});
  signals_.assign(program_.signals, {});
  barriers_.assign(program_.barriers, {});
  semaphores_.clear();
  for (const uint64_t permits : program_.semaphores) semaphores_.push_back({permits, 0, {}});
  queues_.assign(program_.queues.size(), {});
  ranks_.assign(program_.memory.size(), {});
  for (const uint32_t cell : awaited_cells_) packet_waiting_[cell].clear();
  awaited_cells_.clear();
  ranks_left_ = uint32_t(ranks_.size());
  const uint32_t unfair[] = {0, 32, 8, 3};
  if (mode == Mode::drawn) set_speeds(unfair[turns_.draw().below(4)]);
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) turns_.activate(first_rank_ + rank);
}

/// Draws a speed for each rank, block, thread, buffer, and end of a proxy's queue, so that all of it may be
/// late.
void Engine::set_speeds(uint32_t unfair) {
  std::vector<Speed> of_rank;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) of_rank.push_back(turns_.draw_speed(unfair));
  for (const Block& block : program_.blocks) {
    const Speed speed = std::max(of_rank[block.rank], turns_.draw_speed(unfair));
    for (uint32_t thread = block.first; thread < block.first + block.threads; ++thread) {
      turns_.set_speed(thread, std::max(speed, turns_.draw_speed(unfair)));
    }
  }
  // Stores are late more often than threads are.
  const uint32_t lazy = turns_.draw().below(3);
  for (uint32_t agent = first_buffer_; agent < first_rank_; ++agent)
    turns_.set_speed(agent, turns_.draw_speed(lazy));
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
    turns_.set_speed(first_rank_ + rank, turns_.draw_speed(unfair));
}

Verdict Engine::execute(uint64_t seed, Mode mode) {
  begin(seed, mode);
  while (verdict_.ok()) {
    const uint32_t agent = turns_.pick();
    if (agent == Turns::absent) {
      if (ranks_left_ != 0) {
        report_deadlock();
      } else {
        for (uint32_t rank = 0; rank < ranks_.size(); ++rank) check_poison(rank);
      }
      break;
    }
    // An agent takes a few steps at a time. Otherwise no thread would ever be far ahead of the others.
    for (uint32_t left = 1 + turns_.draw().below(8); left != 0 && verdict_.ok(); --left) {
      if (++verdict_.steps > options_.max_steps) {
        verdict_.kind = Verdict::Kind::too_long;
        verdict_.text = fmt::format("more than {} steps", options_.max_steps);
        break;
      }
      if (!step(agent)) break;
    }
  }
  return verdict_;
}

/// Takes one step of an agent. Returns false if the agent cannot go on now.
bool Engine::step(uint32_t agent) {
  Did did;
  if (agent < first_buffer_) {
    did = step_thread(agent);
    const uint32_t block = program_.threads[agent].block;
    if (!memory_.empty(block)) turns_.activate(first_buffer_ + block);
    const uint32_t shared = uint32_t(program_.blocks.size()) + program_.blocks[block].rank;
    if (!memory_.empty(shared)) turns_.activate(first_buffer_ + shared);
    if (did == Did::end) end_thread(agent);
  } else if (agent < first_read_) {
    const uint32_t buffer = agent - first_buffer_;
    if (!memory_.empty(buffer)) memory_.drain_one(buffer, turns_.draw());
    did = memory_.empty(buffer) ? Did::park : Did::step;
  } else if (agent < first_write_) {
    did = read_queue(agent - first_read_);
  } else if (agent < first_rank_) {
    did = write_queue(agent - first_write_);
  } else {
    did = step_rank(agent - first_rank_);
  }
  if (!memory_.arrived.empty()) wake_packets();
  if (did == Did::step) return true;
  turns_.park(agent);
  return false;
}

void Engine::wake(std::vector<uint32_t>& waiting) {
  for (const uint32_t agent : waiting) turns_.activate(agent);
  waiting.clear();
}

void Engine::wake_packets() {
  for (const uint32_t cell : memory_.arrived) wake(packet_waiting_[cell]);
  memory_.arrived.clear();
}

void Engine::wait_for_packet(uint32_t agent, uint32_t cell) {
  packet_waiting_[cell].push_back(agent);
  awaited_cells_.push_back(cell);
}

}  // namespace chorale::adversary
