#include "memory.hpp"

#include "expected.hpp"

namespace chorale::adversary {
namespace {

/// Limits the entries of a store buffer. When it is full, the next store causes the oldest one to be
/// performed.
constexpr size_t most_entries = 64;

}  // namespace

void Memory::begin(bool calm, uint32_t stale_one_in) {
  calm_ = calm;
  stale_one_in_ = stale_one_in;
  now_ = 0;
  if (fresh_.empty()) {
    fresh_.resize(program_.arena.cells());
    for (uint32_t cell = 0; cell < fresh_.size(); ++cell) {
      fresh_[cell].value = mix(mix(cell));
      fresh_[cell].taint = uninitialised;
    }
    // The application's buffers hold what it wrote there. Only scratch may be uninitialised.
    for (const RankMemory& of : program_.memory) {
      for (uint32_t cell = 0; cell < of.input_cells; ++cell) fresh_[of.input + cell].taint = overwritten;
      for (uint32_t cell = 0; cell < of.output_cells; ++cell) fresh_[of.output + cell].taint = overwritten;
    }
  }
  cells_ = fresh_;
  buffers_.resize(buffers());
  for (auto& buffer : buffers_) buffer.clear();
  arrived.clear();
}

void Memory::perform(uint32_t cell, Value value, uint32_t flag, uint32_t writer, uint32_t passed) {
  Cell& of = cells_[cell];
  of.before = of.value;
  of.taint_before = of.taint;
  of.value = value.value;
  of.taint = value.taint;
  of.time = ++now_;
  of.flag = flag;
  of.writer = writer;
  of.passed = passed;
  if (program_.is_packet[cell]) arrived.push_back(cell);
}

/// Returns the newest store to the cell that is not performed yet and that the thread sees; null if there is
/// none. A load through a switch channel does not see plain stores before a release, and a plain load does
/// not see stores through a switch channel.
const Memory::Entry* Memory::own(const Accessor& by, Ref ref) const {
  const std::vector<Entry>& mine = buffers_[by.block];
  for (size_t at = mine.size(); at-- > 0;) {
    const Entry& entry = mine[at];
    if (entry.ref == ref && (entry.thread == by.thread || entry.segment < by.segment)) return &entry;
  }
  const std::vector<Entry>& shared = buffers_[program_.blocks.size() + program_.blocks[by.block].rank];
  for (size_t at = shared.size(); at-- > 0;) {
    if (shared[at].ref == ref) return &shared[at];
  }
  return nullptr;
}

Value Memory::load(const Accessor& by, Ref ref, Draw& draw) const {
  if (const Entry* const entry = own(by, ref)) return entry->value;
  const Cell& cell = cells_[cell_of(ref)];
  // Stores that a barrier has made visible to the rank's blocks stay visible to them, whenever they are
  // performed for others.
  const bool passed = cell.passed && cell.passed <= by.view &&
                      program_.blocks[cell.writer].rank == program_.blocks[by.block].rank;
  const bool may_be_stale = cell.time > by.view && !passed && cell.writer != by.block && stale_one_in_ != 0;
  if (may_be_stale && draw.one_in(stale_one_in_)) return {cell.before, cell.taint_before};
  return {cell.value, cell.taint};
}

bool Memory::load_packet(const Accessor& by, Ref ref, uint32_t flag, Value& value) const {
  if (const Entry* const entry = own(by, ref)) {
    value = entry->value;
    return entry->flag == flag;
  }
  const Cell& cell = cells_[cell_of(ref)];
  value = {cell.value, cell.taint};
  return cell.flag == flag;
}

void Memory::store(const Accessor& by, Ref ref, Value value, uint32_t flag) {
  if (calm_) return perform(cell_of(ref), value, flag, by.block);
  std::vector<Entry>& buffer = buffers_[by.block];
  if (buffer.size() >= most_entries) {
    while (perform_older(buffer.front())) {
    }
    perform(buffer.front());
    buffer.erase(buffer.begin());
  }
  buffer.push_back({ref, flag, by.thread, by.segment, by.block, value});
}

/// Performs an older store to the same cell from the rank's buffer, because it must be performed first.
/// Returns false if there is none.
bool Memory::perform_older(const Entry& entry) {
  std::vector<Entry>& shared = of_rank(entry.block);
  for (size_t older = 0; older < shared.size(); ++older) {
    if (shared[older].ref != entry.ref) continue;
    perform(shared[older]);
    shared.erase(shared.begin() + ptrdiff_t(older));
    return true;
  }
  return false;
}

void Memory::drain_one(uint32_t index, Draw& draw) {
  std::vector<Entry>& buffer = buffers_[index];
  const Entry drawn = buffer[draw.below(uint32_t(buffer.size()))];
  // Earlier stores to the same cell must be performed first. In a rank's buffer all stores are ordered.
  const bool of_rank = index >= program_.blocks.size();
  for (size_t at = 0; at < buffer.size(); ++at) {
    const Entry entry = buffer[at];
    if (entry.ref != drawn.ref) continue;
    if (!of_rank && entry.thread != drawn.thread && entry.segment >= drawn.segment) continue;
    if (!of_rank && perform_older(entry)) return;
    perform(entry);
    buffer.erase(buffer.begin() + ptrdiff_t(at));
    return;
  }
}

void Memory::release(const Accessor& by, bool system) {
  std::vector<Entry>& shared = of_rank(by.block);
  const uint32_t rank = program_.blocks[by.block].rank;
  if (system) {
    for (const Entry& entry : shared) perform(entry);
    shared.clear();
  }
  std::vector<Entry>& buffer = buffers_[by.block];
  size_t kept = 0;
  for (const Entry& entry : buffer) {
    if (entry.segment >= by.segment && entry.thread != by.thread) {
      buffer[kept++] = entry;
    } else if (!system && program_.rank_of[cell_of(entry.ref)] != rank) {
      shared.push_back(entry);
      shared.back().passed = ++now_;
    } else {
      perform(entry);
    }
  }
  buffer.resize(kept);
}

void Memory::release_all(uint32_t block) {
  for (const Entry& entry : of_rank(block)) perform(entry);
  of_rank(block).clear();
  for (const Entry& entry : buffers_[block]) perform(entry);
  buffers_[block].clear();
}

}  // namespace chorale::adversary
