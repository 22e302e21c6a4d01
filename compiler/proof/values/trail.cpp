// This file blames an operation for a wrong output. A copy between two places that should hold the same is
// right, whatever it finds there, so the fault is in an earlier write of its source. If nothing has written
// to such a place, the fault is in a write that puts elsewhere what belongs there.
//
// The collective promises nothing about scratch. The operation that reads scratch tells what belongs there:
// an operand should hold what the result should, without the other operands. If an operand holds something
// else, the write of the operand is at fault, unless what belongs there is in another place of that rank.
// Then either the reader or the writer names a wrong place. It is the writer if others write to that place
// too.
//
// It is used only for messages, never for verdicts. It costs one pass over the writes of one launch. There
// may be as many wrong outputs as writes, so copies are followed once for all of them.

#include "trail.hpp"

#include <algorithm>
#include <unordered_set>

namespace chorale::proof {

void Trail::Wanted::add(const Part& part) {
  parts.push_back(part);
  left += part.times;
  for (uint64_t time = 0; time < part.times; ++time) sum = plus(sum, sum_of(part.origin));
}

void Trail::add(Write write, std::span<const uint32_t> sources) {
  if (writes_.size() == most) return;
  write.first_source = uint32_t(sources_.size());
  write.sources = uint32_t(sources.size());
  for (const uint32_t cell : sources) sources_.push_back({cell, last_[cell]});
  push(write);
}

void Trail::add_again(Write write, size_t first) {
  if (writes_.size() == most) return;
  write.first_source = writes_[first].first_source;
  write.sources = writes_[first].sources;
  push(write);
}

void Trail::push(Write write) {
  write.before = last_[write.cell];
  last_[write.cell] = uint32_t(writes_.size());
  writes_.push_back(write);
}

std::optional<Sum> Trail::promised(uint32_t cell) {
  const std::optional<uint64_t> place = memory_.place_in_output(cell);
  if (!place) return {};
  return promise_.sum(memory_.rank_of(cell), *place, none);
}

bool Trail::misses(const Write& write) {
  const std::optional<Sum> there = promised(write.cell);
  if (!there) return false;
  const uint32_t source = copied(write);
  const std::optional<Sum> here = source == none ? std::nullopt : promised(source);
  return here ? *here != *there : values_.mixed(write.value) || values_.sum(write.value) != *there;
}

void Trail::list_elsewhere() {
  listed_ = true;
  list_collisions();
  for (uint32_t at = 0; at < writes_.size(); ++at) {
    const Write& write = writes_[at];
    if (values_.mixed(write.value)) continue;
    const Sum sum = values_.sum(write.value);
    const uint32_t rank = memory_.rank_of(write.cell), source = copied(write);
    // If accesses race, a place may hold by chance what belongs elsewhere.
    if (source != none && promised(source).value_or(sum) != sum) continue;
    if (!memory_.in_output(write.cell)) {
      scratch_.try_emplace({sum, rank}, at);
      if (last_[write.cell] == at) unused_.try_emplace({sum, rank}, at);
    } else if (promised(write.cell) != sum) {
      mislaid_.try_emplace({sum, rank}, at);
      mislaid_anywhere_.try_emplace(sum, at);
    } else if (write.before != none && values_.sum(writes_[write.before].value) == sum) {
      repeated_.try_emplace(sum, at);
    }
  }
}

std::optional<Trail::Blame> Trail::find_elsewhere(uint32_t rank, Sum wanted) {
  if (!listed_) list_elsewhere();
  const std::pair key(wanted, rank);
  if (const auto found = mislaid_.find(key); found != mislaid_.end())
    return Blame{writes_[found->second], Fault::mislaid};
  if (const auto found = unused_.find(key); found != unused_.end())
    return Blame{writes_[found->second], Fault::unused};
  if (const auto found = mislaid_anywhere_.find(wanted); found != mislaid_anywhere_.end())
    return Blame{writes_[found->second], Fault::strayed};
  if (const auto found = repeated_.find(wanted); found != repeated_.end())
    return Blame{writes_[found->second], Fault::repeated};
  return {};
}

/// Returns the first write of a value to a place of a rank where nothing else is promised; none if there is
/// none.
uint32_t Trail::written_on(uint32_t rank, Sum sum) {
  if (!listed_) list_elsewhere();
  for (const auto* list : {&scratch_, &mislaid_}) {
    if (const auto found = list->find({sum, rank}); found != list->end()) return found->second;
  }
  return none;
}

/// Lists the operations that write a place which another operation overwrites without reading it.
void Trail::list_collisions() {
  for (const Write& write : writes_) {
    if (write.before == none) continue;
    const Write& earlier = writes_[write.before];
    const bool same = earlier.chain == write.chain && earlier.op == write.op;
    const auto reads = [&](const Source& of) { return of.cell == write.cell; };
    if (same || std::ranges::any_of(sources_of(write), reads)) continue;
    collide_.insert({{write.chain, write.op}, {earlier.chain, earlier.op}});
  }
}

/// Returns whether an output of a rank should hold a value.
bool Trail::is_promised_on(uint32_t rank, Sum sum) {
  const auto [list, added] = promises_.try_emplace(rank);
  if (added) {
    const Range output = memory_.buffer(rank, BufferKind::output);
    const uint32_t first = output.begin == output.end ? 0 : memory_.cell(output, 0),
                   n = memory_.count(output);
    for (uint32_t cell = first; output.begin != output.end && cell < first + n; ++cell) {
      if (const auto one = promised(cell)) list->second.insert(*one);
    }
  }
  return list->second.contains(sum);
}

bool Trail::is_input(uint32_t cell) const {
  const Range range = memory_.range_of(cell),
              input = memory_.buffer(memory_.rank_of(cell), BufferKind::input);
  return range.space == input.space && input.begin <= range.begin && range.end <= input.end;
}

/// Returns whether an operand may be wrong because of what an earlier write put there.
bool Trail::leads_on(const Source& of) const {
  return !memory_.in_output(of.cell) && (of.from != none || !is_input(of.cell));
}

/// Returns whether nothing has written to the place of an operand.
bool Trail::is_empty(const Source& of) const { return of.from == none && !is_input(of.cell); }

/// Returns what a cell of an output should hold.
const Trail::Wanted& Trail::wanted_in(uint32_t cell) {
  const auto [found, added] = wanted_.try_emplace(*promised(cell));
  if (!added) return found->second;
  std::map<Origin, uint64_t> parts;
  for (const Origin& of : promise_.origins(memory_.rank_of(cell), *memory_.place_in_output(cell), none))
    ++parts[of];
  for (const auto& [origin, times] : parts) found->second.add({origin, times});
  return found->second;
}

/// Returns a part that is still wanted, or null.
Trail::Wanted::Part* Trail::Wanted::find(const Origin& origin) {
  const auto part = std::ranges::lower_bound(parts, origin, {}, &Part::origin);
  return part != parts.end() && part->origin == origin && part->times ? &*part : nullptr;
}

/// Takes all parts of what a place holds from what is wanted. Returns false, and takes nothing, if they are
/// not all wanted.
bool Trail::take(const Source& source, Wanted& wanted) {
  std::vector<Wanted::Part*> taken;
  const auto take_one = [&](const Origin& origin) {
    ++seen_;
    Wanted::Part* const part = exhausted() ? nullptr : wanted.find(origin);
    if (!part) return false;
    --part->times;
    taken.push_back(part);
    return true;
  };
  bool all = true;
  if (source.from == none) {
    const Range place = memory_.range_of(source.cell);
    const uint32_t rank = place.space / spaces_per_rank;
    all = is_input(source.cell) &&
          take_one({rank, place.begin - memory_.buffer(rank, BufferKind::input).begin});
  } else {
    std::vector<uint32_t> open{writes_[source.from].value};
    while (all && !open.empty()) {
      const uint32_t of = open.back();
      open.pop_back();
      if (!values_.combined(of)) {
        all = take_one(values_.origin_of(of));
        continue;
      }
      ++seen_;
      const auto [left, right] = values_.operands(of);
      open.push_back(left);
      open.push_back(right);
    }
  }
  for (Wanted::Part* const part : taken) {
    if (!all) {
      ++part->times;
      continue;
    }
    --wanted.left;
    wanted.sum = minus(wanted.sum, sum_of(part->origin));
  }
  return all;
}

/// Leaves only the wanted parts of the ranks of which a place holds parts.
void Trail::keep_ranks_of(const Source& source, Wanted& wanted) {
  std::unordered_set<uint32_t> seen, ranks;
  std::vector<uint32_t> open;
  if (source.from != none)
    open.push_back(writes_[source.from].value);
  else if (is_input(source.cell))
    ranks.insert(memory_.rank_of(source.cell));
  while (!open.empty() && !exhausted()) {
    const uint32_t of = open.back();
    open.pop_back();
    if (!seen.insert(of).second) continue;
    ++seen_;
    if (!values_.combined(of)) {
      ranks.insert(values_.origin_of(of).rank);
      continue;
    }
    const auto [left, right] = values_.operands(of);
    open.push_back(left);
    open.push_back(right);
  }
  Wanted kept;
  for (const Wanted::Part& part : wanted.parts) {
    if (part.times && ranks.contains(part.origin.rank)) kept.add(part);
  }
  wanted = std::move(kept);
}

/// Finds the operand because of which a write is wrong.
/// \param at  the wrong write
/// \param wanted  what it should write; on return what the operand should hold, or several should that
///   nothing has written
/// \param several  on return: whether there are several such operands, of which the first is returned
/// \return null if it is not known
const Trail::Source* Trail::wrong_operand(uint32_t at, Wanted& wanted, bool& several) {
  const Source* wrong = nullptr;
  several = false;
  for (const Source& source : sources_of(writes_[at])) {
    if (source.from != none && values_.mixed(writes_[source.from].value)) return nullptr;
    if (take(source, wanted)) continue;
    several |= wrong != nullptr;
    if (!wrong) wrong = &source;
  }
  // Each of several wrong operands most likely stands for the ranks whose parts it has.
  if (several && !is_empty(*wrong)) keep_ranks_of(*wrong, wanted);
  return exhausted() ? nullptr : wrong;
}

/// Finds a write of a wanted part to a place of a rank that an operation does not read; none if there is
/// none.
uint32_t Trail::written_beside(uint32_t rank, const Write& reader, const Wanted& wanted) {
  for (const Wanted::Part& part : wanted.parts) {
    const uint32_t right = part.times ? written_on(rank, sum_of(part.origin)) : none;
    if (right == none) continue;
    const auto reads = [&](const Source& of) { return of.cell == writes_[right].cell; };
    if (std::ranges::none_of(sources_of(reader), reads)) return right;
  }
  return none;
}

/// Finds the write at fault among those that lead to a write of a wrong value.
/// \param at  the wrong write
/// \param wanted  what it should write
Trail::Blame Trail::find_operand(uint32_t at, Wanted wanted) {
  for (;;) {
    const Write& write = writes_[at];
    bool unsorted = false;
    const Source* const wrong = wrong_operand(at, wanted, unsorted);
    const bool several = std::ranges::any_of(wanted.parts, [](const auto& part) { return part.times > 1; });
    if (!wrong || !wanted.left || several || !leads_on(*wrong)) break;
    const uint32_t rank = memory_.rank_of(wrong->cell);
    // A rank may move data on within its memory, so the first wrong read there counts.
    const bool moved_on =
        wrong->from != none && std::ranges::any_of(sources_of(writes_[wrong->from]), [&](const Source& of) {
          return memory_.rank_of(of.cell) == rank;
        });
    unsorted &= is_empty(*wrong);
    const uint32_t right = moved_on   ? none
                           : unsorted ? written_beside(rank, write, wanted)
                                      : written_on(rank, wanted.sum);
    if (right != none && writes_[right].cell != wrong->cell) {
      if (collide_.contains({writes_[right].chain, writes_[right].op}))
        return {writes_[right], Fault::misplaced, wrong->cell, {}, true, unsorted};
      return {write, Fault::misread, wrong->cell, writes_[right]};
    }
    if (wrong->from == none) return {write, Fault::wrong, wrong->cell};
    at = wrong->from;
  }
  return {writes_[at], Fault::wrong, none, {}, !exhausted()};
}

/// Finds the write at fault if a write to an output puts something wrong there.
Trail::Blame Trail::find_cause(uint32_t at) {
  const Write& write = writes_[at];
  // If the value belongs elsewhere, the write itself confuses two places.
  if (values_.mixed(write.value) || is_promised_on(memory_.rank_of(write.cell), values_.sum(write.value)) ||
      std::ranges::none_of(sources_of(write), [&](const Source& of) { return leads_on(of); }))
    return {write, Fault::wrong};
  if (exhausted()) return {write, Fault::wrong, none, {}, false};
  const Wanted& wanted = wanted_in(write.cell);
  seen_ += wanted.parts.size();
  return find_operand(at, wanted);
}

/// Returns whether a write copies from a place that should hold the same.
bool Trail::copies_promised(const Write& write, Sum wanted) {
  const uint32_t source = copied(write);
  return source != none && promised(source) == wanted;
}

/// Follows copies between places that should hold the same, back to the first write.
uint32_t Trail::follow(uint32_t write, Sum wanted) {
  const auto from = [&](uint32_t of) { return sources_[writes_[of].first_source].from; };
  uint32_t at = write;
  while (writes_[at].fault == none && copies_promised(writes_[at], wanted) && from(at) != none) at = from(at);
  const uint32_t fault = writes_[at].fault == none ? at : writes_[at].fault;
  for (uint32_t to = write; writes_[to].fault == none; to = from(to)) {
    writes_[to].fault = fault;
    if (to == at) break;
  }
  return fault;
}

std::optional<Trail::Blame> Trail::find(uint32_t cell) {
  if (writes_.size() == most) return {};
  const std::optional<Sum> wanted = promised(cell);
  if (!wanted) return {};
  if (last_[cell] == none) return find_elsewhere(memory_.rank_of(cell), *wanted);
  const uint32_t at = follow(last_[cell], *wanted);
  const auto known = causes_.find(at);
  if (known != causes_.end()) return known->second;
  const Write& write = writes_[at];
  Blame& cause = causes_[at];
  if (!copies_promised(write, *wanted)) return cause = find_cause(at);
  // Nothing has written to the place from which it copies.
  const uint32_t source = copied(write);
  const auto elsewhere = find_elsewhere(memory_.rank_of(source), *wanted);
  if (elsewhere && elsewhere->fault == Fault::mislaid) return cause = *elsewhere;
  return cause = {write, Fault::wrong, source};
}

}  // namespace chorale::proof
