// This part of Engine runs the application of a rank. It launches, and checks the results of the launches.

#include <fmt/format.h>

#include "engine.hpp"

namespace chorale::adversary {
namespace {

const char* whence(uint8_t taint) {
  if (taint & overwritten) return "made from what the application wrote between launches";
  if (taint & uninitialised) return "made from scratch that was never written";
  return "made from data of another launch, of another place or of other ranks";
}

}  // namespace

Engine::Did Engine::step_rank(uint32_t rank) {
  RankState& state = ranks_[rank];
  if (!state.running) {
    if (state.launch == options_.launches) return Did::park;
    begin_launch(rank);
    return state.threads_left == 0 ? Did::step : Did::park;
  }
  end_launch(rank);
  if (state.launch == options_.launches) --ranks_left_;
  return Did::step;
}

void Engine::begin_launch(uint32_t rank) {
  RankState& state = ranks_[rank];
  if (state.launch != 0) {
    check_poison(rank);
  } else {
    poison(rank);
  }
  const RankMemory& memory = program_.memory[rank];
  for (uint32_t cell = 0; cell < memory.input_cells; ++cell) {
    memory_.write(memory.input + cell, {input_value(rank, cell, state.launch), clean});
  }
  copy(memory.before);
  state.running = true;
  state.start = memory_.now();
  for (uint32_t position = program_.first_block[rank]; position < program_.first_block[rank + 1];
       ++position) {
    const Block& block = program_.blocks[position];
    blocks_[position].view = state.start;
    state.threads_left += block.threads;
    for (uint32_t thread = block.first; thread < block.first + block.threads; ++thread) {
      const Span& span = program_.threads[thread].of[epoch(rank) % 2];
      threads_[thread] = {};
      threads_[thread].pc = span.first;
      threads_[thread].end = span.end;
      threads_[thread].view = state.start;
      turns_.activate(thread);
    }
  }
}

void Engine::end_launch(uint32_t rank) {
  for (uint32_t block = program_.first_block[rank]; block < program_.first_block[rank + 1]; ++block) {
    memory_.release_all(block);
  }
  copy(program_.memory[rank].after);
  check_result(rank);
  ++ranks_[rank].launch;
  ranks_[rank].running = false;
  poison(rank);
}

void Engine::copy(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) {
    for (uint32_t cell = 0; cell < copy.cells; ++cell)
      memory_.write(copy.to + cell, memory_.read(copy.from + cell));
  }
}

uint64_t Engine::poison_value(uint32_t rank, uint32_t buffer, uint64_t cell) const {
  return mix(mix(uint64_t(rank) << 34 | uint64_t(buffer) << 32 | ranks_[rank].launch) ^ ~cell);
}

/// Overwrites the input and the output, as the application may do between launches.
void Engine::poison(uint32_t rank) {
  const RankMemory& memory = program_.memory[rank];
  for (uint32_t cell = 0; cell < memory.output_cells; ++cell) {
    memory_.write(memory.output + cell, {poison_value(rank, 1, cell), overwritten});
  }
  for (uint32_t cell = 0; cell < memory.input_cells; ++cell) {
    memory_.write(memory.input + cell, {poison_value(rank, 0, cell), overwritten});
  }
}

/// Checks that only the application writes to its buffers between launches.
void Engine::check_poison(uint32_t rank) {
  const RankMemory& memory = program_.memory[rank];
  const auto check = [&](uint32_t first, uint32_t cells, uint32_t buffer) {
    for (uint32_t cell = 0; cell < cells; ++cell) {
      // In place, input and output share cells, which hold the poison of the one that was written last.
      const bool both = memory.one_storage && buffer == 1 && first + cell - memory.input < memory.input_cells;
      if (both || memory_.read(first + cell).value == poison_value(rank, buffer, cell)) continue;
      return found(Verdict::Kind::late_write, rank, cell,
                   fmt::format("the {} of rank {} is written between launches, at byte {}",
                               buffer_names[buffer], rank, uint64_t(cell) * program_.arena.cell_bytes()));
    }
  };
  check(memory.output, memory.output_cells, 1);
  check(memory.input, memory.input_cells, 0);
}

/// Compares the output with the result that the plan declares. If the plan declares none, it compares output
/// and input with the result of a calm schedule.
void Engine::check_result(uint32_t rank) {
  const RankMemory& memory = program_.memory[rank];
  const uint32_t launch = ranks_[rank].launch;
  if (!expected_.known()) {
    std::vector<uint64_t>& calm = calm_[launch][rank];
    for (const bool input : {false, true}) {
      const uint32_t first = input ? memory.input : memory.output;
      const uint32_t cells = input ? memory.input_cells : memory.output_cells;
      for (uint32_t cell = 0; cell < cells; ++cell) {
        const uint64_t seen = memory_.read(first + cell).value;
        if (mode_ == Mode::calm) {
          calm.push_back(seen);
        } else if (seen != calm[cell + (input ? memory.output_cells : 0)]) {
          return wrong(rank, input, cell);
        }
      }
    }
    return;
  }
  if (!expected_.receives(rank)) return;  // its output keeps the application's data
  uint32_t sender = 0, good_until = 0;
  for (uint32_t candidate = 0; candidate < expected_.senders(); ++candidate) {
    uint32_t cell = 0;
    while (cell < memory.output_cells &&
           memory_.read(memory.output + cell).value == expected_.value(rank, cell, launch, candidate)) {
      ++cell;
    }
    if (cell > good_until) sender = candidate;
    good_until = std::max(good_until, cell);
  }
  for (uint32_t cell = 0; cell < memory.output_cells; ++cell) {
    const std::optional<uint64_t> wanted = expected_.value(rank, cell, launch, sender);
    if (wanted && memory_.read(memory.output + cell).value != *wanted) return wrong(rank, false, cell);
  }
}

void Engine::wrong(uint32_t rank, bool input, uint32_t cell) {
  const RankMemory& memory = program_.memory[rank];
  const Value seen = memory_.read((input ? memory.input : memory.output) + cell);
  const bool written = seen.value != poison_value(rank, input ? 0 : 1, cell);
  const bool theirs = written && (seen.taint & overwritten);
  found(
      theirs ? Verdict::Kind::overwrite_seen : Verdict::Kind::wrong_result, rank, cell,
      fmt::format("the {} of rank {} is wrong in launch {} from byte {} on: {}", buffer_names[input ? 0 : 1],
                  rank, ranks_[rank].launch + 1, uint64_t(cell) * program_.arena.cell_bytes(),
                  written ? whence(seen.taint) : "it was not written"));
}

void Engine::found(Verdict::Kind kind, uint32_t rank, uint64_t cell, std::string text) {
  if (!verdict_.ok()) return;
  verdict_.kind = kind;
  verdict_.rank = rank;
  verdict_.byte = cell * program_.arena.cell_bytes();
  verdict_.launch = ranks_[rank].launch + 1;
  verdict_.text = std::move(text);
}

}  // namespace chorale::adversary
