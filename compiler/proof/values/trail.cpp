// This file blames an operation for a wrong output. A copy between two places that should hold the same is
// right, whatever it finds there, so the fault is in an earlier write of its source. If nothing has written
// to such a place, the fault is in a write that puts elsewhere what belongs there.
//
// It is used only for messages, never for verdicts. It costs one pass over the writes of one launch.

#include "trail.hpp"

namespace chorale::proof {

void Trail::add(const Write& write) {
  if (writes_.size() == most) return;
  writes_.push_back(write);
  writes_.back().before = last_[write.cell];
  if (write.source != none) writes_.back().from = last_[write.source];
  last_[write.cell] = uint32_t(writes_.size() - 1);
}

std::optional<Sum> Trail::promised(uint32_t cell) {
  const Range range = memory_.range_of(cell);
  const uint32_t rank = range.space / spaces_per_rank;
  const Range output = memory_.buffer(rank, BufferKind::output);
  if (range.space != output.space || range.begin < output.begin || range.end > output.end) return {};
  return promise_.sum(rank, range.begin - output.begin, none);
}

void Trail::list_elsewhere() {
  listed_ = true;
  for (uint32_t at = 0; at < writes_.size(); ++at) {
    const Write& write = writes_[at];
    if (values_.mixed(write.value)) continue;
    const Sum sum = values_.sum(write.value);
    const uint32_t rank = memory_.rank_of(write.cell);
    if (!memory_.in_output(write.cell)) {
      if (last_[write.cell] == at) unused_.try_emplace({sum, rank}, at);
    } else if (promised(write.cell) != sum) {
      mislaid_.try_emplace({sum, rank}, at);
      mislaid_anywhere_.try_emplace(sum, at);
    } else if (write.before != none && values_.sum(writes_[write.before].value) == sum) {
      repeated_.try_emplace(sum, at);
    }
  }
}

std::optional<std::pair<Trail::Write, Trail::Fault>> Trail::find_elsewhere(uint32_t rank, Sum wanted) {
  if (!listed_) list_elsewhere();
  const std::pair key(wanted, rank);
  if (const auto found = mislaid_.find(key); found != mislaid_.end())
    return std::pair(writes_[found->second], Fault::mislaid);
  if (const auto found = unused_.find(key); found != unused_.end())
    return std::pair(writes_[found->second], Fault::unused);
  if (const auto found = mislaid_anywhere_.find(wanted); found != mislaid_anywhere_.end())
    return std::pair(writes_[found->second], Fault::strayed);
  if (const auto found = repeated_.find(wanted); found != repeated_.end())
    return std::pair(writes_[found->second], Fault::repeated);
  return {};
}

/// Returns whether a write copies from a place that should hold the same.
bool Trail::copies_promised(const Write& write, Sum wanted) {
  return write.source != none && promised(write.source) == wanted;
}

/// Follows copies between places that should hold the same, back to the first write.
uint32_t Trail::follow(uint32_t write, Sum wanted) {
  uint32_t at = write;
  while (writes_[at].fault == none && writes_[at].from != none && copies_promised(writes_[at], wanted))
    at = writes_[at].from;
  const uint32_t fault = writes_[at].fault == none ? at : writes_[at].fault;
  for (uint32_t to = write; writes_[to].fault == none; to = writes_[to].from) {
    writes_[to].fault = fault;
    if (to == at) break;
  }
  return fault;
}

std::optional<std::pair<Trail::Write, Trail::Fault>> Trail::find(uint32_t cell) {
  if (writes_.size() == most) return {};
  const Sum wanted = *promised(cell);
  if (last_[cell] == none) return find_elsewhere(memory_.rank_of(cell), wanted);
  const Write& write = writes_[follow(last_[cell], wanted)];
  if (write.from == none && copies_promised(write, wanted)) {
    const auto elsewhere = find_elsewhere(memory_.rank_of(write.source), wanted);
    if (elsewhere && elsewhere->second == Fault::mislaid) return elsewhere;
  }
  return std::pair(write, Fault::wrong);
}

}  // namespace chorale::proof
