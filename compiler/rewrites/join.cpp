// This file checks what each kind of rule requires to join two operations.
//
// In all kinds, a join is correct if it keeps the order of any two accesses to one chunk. Operations that
// work element by element keep it if the chunks are the very same, because one thread then does both in
// order. Any other overlap that includes a write forbids the join, in this rank's memory and in a peer's.
//
// Operations that wait are joined only if no other block of the rank waits on the same ids. Otherwise the
// joined operation could take two things in any order, and so take what another block needs to go on. Two
// transfers that signal on one channel are not joined, because the signal of one could overtake the data of
// the other.
//
// A chain of reductions in a 16-bit or 8-bit type is rounded once instead of after every link, so the last
// bit of its result may differ.

#include "join.hpp"

#include <algorithm>
#include <utility>

#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

/// Appends a copy of `n` items of a pool to its end.
template <class T>
void copy_to_end(std::vector<T>& pool, size_t first, size_t n) {
  for (size_t at = first; at < first + n; ++at) pool.push_back(T(pool[at]));
}

}  // namespace

Joiner::Joiner(const Plan& plan, const Gpu& gpu, ThreadBlock& block, const OpBounds& bounds,
               std::optional<Readers>& readers, std::optional<Waiters>& waiters)
    : plan_(plan), gpu_(gpu), block_(block), bounds_(bounds), readers_(readers), waiters_(waiters) {}

std::span<const Operand> Joiner::sources(const Op& op) const { return std::as_const(block_).sources(op); }
std::span<const Operand> Joiner::dests(const Op& op) const { return std::as_const(block_).dests(op); }

bool Joiner::join(Op& left, const Op& right) {
  const Rule* rule = rule_for(left.code, right.code);
  if (!rule || left.extra || right.extra) return false;
  if (rule->join == Join::fence) {
    if (right.code == rule->result) left = right;
    return true;
  }
  if (left.group_index != right.group_index || left.group_size != right.group_size) return false;
  Added added;
  if (!codecs_unite(*rule, left, right)) return false;
  if (!matches(*rule, left, right, added) || !fits(*rule, left, right, added)) return false;
  if (!keeps_order(rule->join, left, right)) return false;
  replace(*rule, left, right, added);
  if (rule->join == Join::ids) return true;
  // The joined operation has the accesses of both. A source that the left one has just written adds nothing
  // to that write.
  for (const Access& access : second_) {
    if (std::find(first_.begin(), first_.end(), access) == first_.end()) first_.push_back(access);
  }
  listed_ = rule->join == Join::multicast ? nothing : operands_of(left);
  return true;
}

/// Returns whether the joined operation would encode and decode as both do. It can have one codec. If the
/// left one encodes its result, the right one would get the result as it was before.
bool Joiner::codecs_unite(const Rule& rule, const Op& left, const Op& right) const {
  uint32_t only = 0;
  for (const Op* const op : {&left, &right}) {
    for (const std::span<const Operand> operands : {sources(*op), dests(*op)}) {
      for (const Operand& operand : operands) {
        if (!operand.codec) continue;
        if (only && only != operand.codec) return false;
        only = operand.codec;
      }
    }
  }
  if (rule.join == Join::chain) return left.destinations == 0 || dests(left)[0].codec == 0;
  if (rule.join != Join::store || dests(left)[0].codec == 0) return true;
  return std::all_of(dests(right).begin(), dests(right).end(),
                     [&](const Operand& dest) { return dest.codec == only; });
}

bool Joiner::matches(const Rule& rule, const Op& left, const Op& right, Added& added) {
  const std::span<const Operand> left_sources = sources(left), right_sources = sources(right);
  const std::span<const Operand> left_dests = dests(left), right_dests = dests(right);
  const auto all_are = [&](const Operand& made) {
    return std::all_of(right_sources.begin(), right_sources.end(),
                       [&](const Operand& source) { return source == made; });
  };
  switch (rule.join) {
    case Join::fence:
      return true;
    case Join::ids:
      return left.via == right.via && ids_unite(left, right, added.ids);
    case Join::lists:
      added.sources = right_sources;
      added.dests = right_dests;
      return left.via == right.via && left_sources[0].size == right_sources[0].size &&
             one_buffer(left, right) && ids_unite(left, right, added.ids);
    case Join::forward:
      added.dests = right_dests;
      return left.via == right.via && left_sources[0] == right_sources[0] &&
             ids_unite(left, right, added.ids);
    case Join::chain:
      if (left.reduce_op != right.reduce_op || left.via != right.via) return false;
      added.sources = right_sources.subspan(1);
      return left_dests[0] == right_sources[0] && left_dests[0] == right_dests[0] &&
             (bounds_.moving_chains || left_sources[0] == left_dests[0]) && !reads_again(right);
    case Join::store:
      added.dests = right_dests;
      return is_direct(right.via) && all_are(left_dests[0]);
    case Join::keep:
      added.dests = right_dests;
      return all_are(left_dests[0]);
    case Join::relay:
      added.dests = right_dests;
      return is_direct(right.via) && all_are(left_dests[1]);
    case Join::multicast:
      added.dests = right_dests;
      added.instead_of_own = true;
      return all_are(left_dests[0]) && left_sources[0].ref == right_dests[0].ref && unused(left, right);
  }
  return false;
}

/// Returns whether one operation of the target can have the sources of both.
bool Joiner::one_buffer(const Op& left, const Op& right) const {
  const bool local = shape(left.code).sources[0].role == Role::Read;
  return !local || bounds_.mixed_transfers || sources(left)[0].ref == sources(right)[0].ref;
}

/// Returns whether the ids of both can be in one operation. They cannot if both name one id and that matters,
/// or if waiting on both at once could starve another block.
/// \param add  set to whether the joined operation has the ids of both; puts to memory need none
bool Joiner::ids_unite(const Op& left, const Op& right, bool& add) {
  const Shape& row = shape(left.code);
  const IdKind kind = id_kind(row, left.via);
  add = kind != IdKind::none;
  if (kind == IdKind::none || row.has(Role::Channels)) return true;
  // Transfers without a signal may come in any order, and so may releases, even with one id.
  const bool waits = row.has_any(await_roles) || row.has(Role::Acquire);
  const bool ordered = waits || row.has_any(post_roles) || row.has(Role::Drain);
  const std::span<const uint32_t> first = block_.op_ids(left), more = block_.op_ids(right);
  if (ordered && std::find_first_of(first.begin(), first.end(), more.begin(), more.end()) != first.end())
    return false;
  if (!waits) return true;
  if (!waiters_) waiters_.emplace(gpu_);
  // The ids of an operation that was joined before have been checked already.
  return (left.first_id == alone_ || waiters_->only(block_, left)) && waiters_->only(block_, right);
}

/// Returns whether a later source of `right` overlaps its destination. It then needs the value that the chain
/// has not stored yet.
bool Joiner::reads_again(const Op& right) {
  std::vector<Access> accesses;
  list_accesses(plan_, gpu_, block_, right, false, accesses);
  const auto written =
      std::find_if(accesses.begin(), accesses.end(), [](const Access& access) { return access.write; });
  if (written == accesses.end()) return false;
  return std::count_if(accesses.begin(), accesses.end(),
                       [&](const Access& access) { return !access.write && overlap(access, *written); }) > 1;
}

/// Returns whether the chunks that `left` reduces to need not be written. This holds if the broadcast stores
/// the same value there, or if they are no result and no other operation of any rank reads them.
bool Joiner::unused(const Op& left, const Op& right) {
  std::vector<Access> first, second;
  list_accesses(plan_, gpu_, block_, left, true, first);
  list_accesses(plan_, gpu_, block_, right, true, second);
  // Sources come first, and the destination is the last access.
  if (first.empty()) return false;
  const Access dropped = first.back();
  if (std::find(second.begin(), second.end(), dropped) != second.end()) return true;
  const bool result =
      dropped.buffer == BufferKind::output || (plan_.inplace && dropped.buffer != BufferKind::scratch);
  if (result) return false;
  if (!readers_) readers_.emplace(plan_);
  return readers_->count(dropped) == Readers::count(first, dropped) + Readers::count(second, dropped);
}

bool Joiner::fits(const Rule& rule, const Op& left, const Op& right, const Added& added) const {
  const size_t own_dests = added.instead_of_own ? 0 : left.destinations;
  if (left.sources + added.sources.size() > bounds_.operands) return false;
  if (own_dests + added.dests.size() > bounds_.operands) return false;
  if (!added.ids) return true;
  const bool semaphores = id_kind(shape(rule.result), right.via) == IdKind::semaphore;
  return size_t(left.ids) + right.ids <= (semaphores ? bounds_.semaphores : bounds_.channels);
}

/// Returns whether all accesses to each chunk keep their order.
bool Joiner::keeps_order(Join join, const Op& left, const Op& right) {
  if (join == Join::ids) return true;
  const bool by_element = join != Join::lists && join != Join::forward;
  if (listed_ != operands_of(left)) {
    first_.clear();
    list_accesses(plan_, gpu_, block_, left, true, first_);
    listed_ = operands_of(left);
  }
  second_.clear();
  list_accesses(plan_, gpu_, block_, right, true, second_);
  for (const Access& before : first_) {
    for (const Access& after : second_) {
      if (!conflict(before, after)) continue;
      const bool same =
          before.packets == after.packets && before.begin == after.begin && before.end == after.end;
      if (!by_element || !same) return false;
    }
  }
  return true;
}

void Joiner::replace(const Rule& rule, Op& left, const Op& right, const Added& added) {
  replaced_destinations_ = added.instead_of_own;
  left.code = rule.result;
  if (left.via == ChannelType::none)
    left.via = shape(rule.result).has(Role::Via) ? right.via : ChannelType::none;
  left.sync = SyncType(uint8_t(left.sync) | uint8_t(right.sync));
  if (!added.sources.empty() || !added.dests.empty()) extend_operands(left, added);
  if (!added.ids) {
    left.ids = 0;
    return;
  }
  extend_ids(left, right);
  const Shape& row = shape(left.code);
  if (row.has_any(await_roles) || row.has(Role::Acquire)) alone_ = left.first_id;
}

/// Moves lists that grow to the end of the pool. A list that an earlier join has put there is only extended.
void Joiner::extend_operands(Op& left, const Added& added) {
  std::vector<Operand>& pool = block_.operands;
  const std::span<const Operand> own = added.instead_of_own ? std::span<const Operand>() : dests(left);
  room_.assign(added.sources.begin(), added.sources.end());
  room_.insert(room_.end(), own.begin(), own.end());
  room_.insert(room_.end(), added.dests.begin(), added.dests.end());
  if (size_t(left.first_operand) + left.sources + left.destinations == pool.size()) {
    pool.resize(left.first_operand + left.sources);
  } else {
    const size_t first = left.first_operand;
    left.first_operand = uint32_t(pool.size());
    copy_to_end(pool, first, left.sources);
  }
  pool.insert(pool.end(), room_.begin(), room_.end());
  left.sources = uint16_t(left.sources + added.sources.size());
  left.destinations = uint16_t(own.size() + added.dests.size());
}

void Joiner::extend_ids(Op& left, const Op& right) {
  std::vector<uint32_t>& pool = block_.ids;
  if (left.first_id + left.ids != right.first_id) {  // mostly equal: they were recorded one after the other
    if (size_t(left.first_id) + left.ids != pool.size()) {
      const size_t first = left.first_id;
      left.first_id = uint32_t(pool.size());
      copy_to_end(pool, first, left.ids);
    }
    copy_to_end(pool, right.first_id, right.ids);
  }
  left.ids = uint16_t(left.ids + right.ids);
}

}  // namespace chorale
