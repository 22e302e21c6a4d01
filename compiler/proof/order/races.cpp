// This file proves that no two agents access the same bytes at once if one of them writes. Before data is
// read, its write must be visible. Before data is overwritten, earlier accesses must be over: see order.hpp.
// The order of a plan is the same in every execution (deadlock.cpp says why), so each pair of accesses is
// checked in one execution.
//
// For each cell, the proof keeps the last writer and the readers since then. An access that is ordered after
// these is ordered after all before them, or an earlier pair was already found to race. Packets carry a flag
// that their readers wait for. So reading them needs no order, unless a slot is written twice in a launch.
//
// The application owns a rank's input and output between launches. It writes the input before a launch, and
// after it, reads the output and overwrites both. So a peer that accesses them too early or too late races
// with it.
//
// Replay: the next launch uses scratch again, or the one after it if there are two banks. The order is the
// same from launch to launch. If all accesses of two launches that far apart are ordered once, they always
// are. So executing one launch more than there are banks is enough for any number.
//
// This costs O(a) for the cells of all accesses, times the readers that a cell has between two writes, and at
// most O(s c / 32) for s signals between c thread blocks. The latter is O(s log c) if a block learns of most
// others through few blocks, as in a ring: see clock.hpp.

#include "races.hpp"

#include <algorithm>

namespace chorale::proof {
namespace {

/// Packets may be made of packets that were made of packets. What they tell is followed back at most this
/// many steps. A plan that relies on more is refused, although it has no race.
constexpr int most_forwards = 6;

}  // namespace

Races::Races(const SymbolicExecutor& executor, const Shares& shares, Findings& findings, bool facts)
    : Order(executor),
      shares_(shares),
      findings_(findings),
      facts_(facts),
      cells_(executor.memory().cells()),
      packets_(executor.memory().any_packets() ? executor.memory().cells() : 0),
      received_(agents().size()),
      knows_(agents().size()),
      visits_(executor.plan().ranks()),
      ended_(executor.plan().ranks()),
      used_(executor.plan().ranks()) {
  told_.emplace_back();
}

void Races::begin(uint32_t rank, uint32_t launch) {
  if (launch == 0) {
    // Earlier work in the stream has filled the input, and may have used the output until now.
    touch_by_application(rank, BufferKind::output, false, true);
    touch_by_application(rank, BufferKind::input, true);
  }
  ++agent(application(rank)).segment;
  Order::begin(rank, launch);
}

void Races::end(uint32_t rank, uint32_t launch) {
  Order::end(rank, launch);
  if (facts_ && launch == 0) {
    const Clock& known = agent(application(rank)).over;
    for (const auto& [visitor, segment] : visits_[rank]) exit_quiescent_ &= segment <= known[visitor];
    // Packets that were read have arrived.
    const auto [first, n] = executor_.memory().cells_of(rank * spaces_per_rank + packet_space, launch);
    for (uint32_t at = first; at < first + n; ++at)
      exit_quiescent_ &= cells_[at].write.agent == nobody || cells_[at].readers != nobody;
  }
  ended_[rank] = launch + 1;
  ++agent(application(rank)).segment;
  touch_by_application(rank, BufferKind::output, false, true);
  touch_by_application(rank, BufferKind::input, true);
}

void Races::move(uint32_t chain, const SymbolicStep& step, std::span<const Touch> touches) {
  op_ = executor_.chains()[chain].op;
  launch_ = executor_.chains()[chain].launch;
  number_move(chain, touches);
  uint32_t reads = block_id(chain), writes = reads;
  if (step.kind == SymbolicStep::Kind::push) std::tie(reads, writes) = hand_over(chain, step);
  check_own_operands(block_id(chain), touches);
  base_ = over_ = agent(writes).over;
  sources_ = touches.first(step.sources);
  hears_ =
      std::any_of(sources_.begin(), sources_.end(), [](const Touch& touch) { return touch.access->packets; });
  heard_.clear();
  for (const Touch& touch : sources_) touch_all(reads, touch, step.kind == SymbolicStep::Kind::push);
  if (reads == writes && !heard_.empty() && !may_be_empty(executor_.chains()[chain])) {
    for (const uint32_t told : heard_) agent(writes).pending.join(told_[told]);
  }
  heard_.clear();
  const std::span<const Touch> dests = touches.subspan(step.sources);
  if (std::any_of(dests.begin(), dests.end(), [](const Touch& touch) { return touch.access->packets; }))
    note_sent(reads);
  for (const Touch& touch : dests) {
    if (!step.combines && forwards_to_itself(touch))
      note_forwarded(writes, touch);
    else
      touch_all(writes, touch, false);
  }
  if (step.kind == SymbolicStep::Kind::push) complete(reads, writes);
}

/// Gives the move a unique number. Only pairs of one operation with the very same operands share a number.
/// They cannot race with each other, because each thread does both at the same place, in order.
void Races::number_move(uint32_t chain, std::span<const Touch> touches) {
  move_ = ++moves_;
  const Chain& of = executor_.chains()[chain];
  if (of.steps.steps.size() < 2 || touches.size() != 2) return;
  const std::tuple here(chain, of.op, of.launch, of.turn.first);
  if (here != pairs_of_) pairs_.clear();
  pairs_of_ = here;
  const Pair pair{move_, touches[0].range, touches[1].range};
  for (const Pair& other : pairs_) {
    if (other.source == pair.source && other.dest == pair.dest) {
      move_ = other.move;
      return;
    }
  }
  pairs_.push_back(pair);
}

/// Reports an operation whose operands overlap at different positions, because one of its threads overwrites
/// what another reads.
void Races::check_own_operands(uint32_t id, std::span<const Touch> touches) {
  for (size_t k = 0; k < touches.size(); ++k) {
    for (size_t other = 0; other < k; ++other) {
      const Touch &one = touches[other], &two = touches[k];
      if (one.range.space != two.range.space || one.range.begin == two.range.begin) continue;
      if (!one.access->write && !two.access->write) continue;
      if (one.range.begin >= two.range.end || two.range.begin >= one.range.end) continue;
      what_ = two.access;
      overlap_inside(here(id));
    }
  }
}

/// Records packets that are written to the slot from which they were read. They do not change the content of
/// the slot, so readers get the same before and after. But such a write may arrive late and overwrite newer
/// packets in the slot. So a newer write must come after it.
void Races::note_forwarded(uint32_t id, const Touch& touch) {
  what_ = touch.access;
  for (uint32_t at = touch.cell; at < touch.cell + touch.cells; ++at) push(cells_[at].writers, here(id));
}

bool Races::forwards_to_itself(const Touch& dest) const {
  return dest.access->packets && std::any_of(sources_.begin(), sources_.end(), [&](const Touch& source) {
           return source.access->packets && source.cell == dest.cell;
         });
}

void Races::note_sent(uint32_t id) {
  Sent& sent = sent_.emplace_back();
  sent.epoch = here(id);
  if (agent(id).kind == Agent::Kind::block && is_whole(executor_.chains()[agent(id).chain]))
    sent_by_[move_].push_back(uint32_t(sent_.size() - 1));
  for (const Touch& touch : sources_) {
    Sent::Source& source = sent.sources.emplace_back();
    source.cell = touch.cell;
    for (uint32_t at = 0; touch.access->packets && at < touch.cells; ++at)
      source.sent.emplace_back(packet(touch.cell + at).sent, packet(touch.cell + at).position);
  }
}

/// Returns whether one block does a whole operation at once. Then the operation has every position.
bool Races::is_whole(const Chain& chain) const {
  const Op& op = executor_.plan().gpus[chain.rank].threadblocks[chain.block].ops[chain.op];
  return !chain.turn.atoms && op.group_size <= 1;
}

void Races::note_received(uint32_t id, const PacketCell& slot) {
  // If a slot is written again, it is unknown which of the two packets was read.
  if (slot.sent == nobody || slot.again || !is_whole(executor_.chains()[agent(id).chain])) return;
  std::vector<Received>& list = received_[id];
  if (!list.empty() && list.back().sent == slot.sent && list.back().end == slot.position)
    ++list.back().end;
  else
    list.push_back({slot.sent, slot.position, slot.position + 1});
}

/// Lets all threads of the block know what each of them has read. The sender of a packet had read for it at
/// the same position.
void Races::sync(uint32_t chain) {
  Order::sync(chain);
  const uint32_t id = block_id(chain);
  for (const Received& one : received_[id]) knows_[id][one.sent].push_back(one);
  received_[id].clear();
}

/// Returns whether the block has packets which tell that `reader` has read a cell. Clocks cannot show that,
/// because one operation read the cell and sent the packets in the same segment.
bool Races::knows_of_read(uint32_t id, uint32_t cell, const Epoch& reader) const {
  if (knows_[id].empty()) return false;
  const auto by = sent_by_.find(reader.move);
  // Pairs of one operation that share a number have read the cell several times.
  if (by == sent_by_.end() || by->second.size() != 1) return false;
  const Sent& sent = sent_[by->second[0]];
  const auto known = knows_[id].find(by->second[0]);
  if (sent.epoch.agent != reader.agent || known == knows_[id].end()) return false;
  for (const Sent::Source& source : sent.sources) {
    for (const Received& one : known->second) {
      if (cell >= source.cell + one.begin && cell < source.cell + one.end) return true;
    }
  }
  return false;
}

/// Returns whether the packets that this operation has read at its position tell that `reader` has read a
/// cell.
bool Races::told_of_read(uint32_t cell, const Epoch& reader) const {
  if (position_ == nobody) return false;
  for (const Touch& touch : sources_) {
    if (!touch.access->packets || position_ >= touch.cells) continue;
    const PacketCell& slot = packets_[touch.cell + position_];
    if (told_of_read_by(slot.sent, slot.position, cell, reader, most_forwards)) return true;
  }
  return false;
}

bool Races::told_of_read_by(uint32_t sent, uint32_t position, uint32_t cell, const Epoch& reader,
                            int depth) const {
  if (sent == nobody || !depth) return false;
  const Sent& of = sent_[sent];
  const bool mine = of.epoch.agent == reader.agent && of.epoch.move == reader.move;
  for (const Sent::Source& source : of.sources) {
    if (mine && source.cell + position == cell) return true;
    if (position >= source.sent.size()) continue;
    const auto [before, at] = source.sent[position];
    if (told_of_read_by(before, at, cell, reader, depth - 1)) return true;
  }
  return false;
}

/// Returns whether a member of a group may have nothing to do in a turn of a pipeline, because the turn may
/// be shorter than the others. Such a member sends no packets, so its packets prove nothing.
bool Races::may_be_empty(const Chain& chain) const {
  const Op& op = executor_.plan().gpus[chain.rank].threadblocks[chain.block].ops[chain.op];
  return chain.turn.atoms && op.group_size > 1 && op.group_index > 0;
}

/// Sets over_ to everything that the thread that writes at position_ knows to have ended. That thread has
/// read the packets at that position, and no others. If the position is unknown, the thread knows only what
/// all packets of an operand tell.
/// \return whether over_ has changed
bool Races::learn_from_packets() {
  if (!hears_) return false;
  heard_here_.clear();
  for (const Touch& touch : sources_) {
    if (!touch.access->packets || !touch.cells) continue;
    if (position_ != nobody) {
      if (position_ < touch.cells) heard_here_.push_back(packet(touch.cell + position_).told);
      continue;
    }
    const uint32_t first = packet(touch.cell).told;
    bool all = true;
    for (uint32_t at = 1; at < touch.cells; ++at) all &= packet(touch.cell + at).told == first;
    if (all) heard_here_.push_back(first);
  }
  if (heard_here_ == heard_) return false;
  heard_ = heard_here_;
  over_ = base_;
  for (const uint32_t told : heard_) over_.join(told_[told]);
  return true;
}

void Races::touch_all(uint32_t id, const Touch& touch, bool by_proxy) {
  what_ = touch.access;
  uint32_t cell = touch.cell, cells = touch.cells;
  position_ = 0;
  if (!touch.access->packets && cells) {
    const Chain& chain = executor_.chains()[agent(id).chain];
    const Op& op = executor_.plan().gpus[chain.rank].threadblocks[chain.block].ops[chain.op];
    set_ = shares_.loose(*touch.access, op, chain.turn);
    if (set_) {
      member_ = op.group_index;
      const Range whole = executor_.memory().whole(*touch.access, chain.turn);
      cell = executor_.memory().cell(whole, launch_);
      cells = executor_.memory().count(whole);
      position_ = nobody;
    }
  }
  for (uint32_t at = cell; at < cell + cells; ++at) {
    const bool news = touch.access->write && learn_from_packets();
    if (facts_ && (news || at == cell))
      note_visit(id, *touch.access, executor_.chains()[agent(id).chain].rank);
    if (touch.access->packets && touch.access->write && (news || at == cell)) tell_by_packets(id);
    if (touch.access->packets)
      touch.access->write ? write_packets(id, at) : read_packets(id, at, by_proxy);
    else
      touch.access->write ? write(id, at) : read(id, at);
    if (position_ != nobody) ++position_;
  }
  set_ = member_ = 0;
}

/// Records what the packets that are written now tell: everything that the block knows to have ended, and
/// what the packets told of which they are made.
void Races::tell_by_packets(uint32_t id) {
  if (may_be_empty(executor_.chains()[agent(id).chain])) {
    told_.emplace_back();
    return;
  }
  Clock clock = told_by_packet(id);
  if (!over_.same(base_)) clock.join(over_);
  if (!told_.back().same(clock)) told_.push_back(clock);
}

/// Updates entry_guarded() and exit_quiescent() when an agent accesses memory of another rank, `host`.
void Races::note_visit(uint32_t id, const Access& access, uint32_t host) {
  if (access.rank == host || launch_) return;
  entry_guarded_ &= over_[application(access.rank)] > 0;
  if (ended_[access.rank]) exit_quiescent_ = false;
  if (!access.packets) visits_[access.rank][id] = agent(id).segment + 1;
}

/// Makes the application access a buffer of its rank. If `overwritten`, it reads the buffer and then uses it
/// for something else, so peers must have finished reading it, too. This is not a write, because what peers
/// write there need not come after it.
void Races::touch_by_application(uint32_t rank, BufferKind kind, bool write_it, bool overwritten) {
  Access access{rank, kind, write_it, false, false, 0, executor_.plan().gpus[rank].chunks[size_t(kind)]};
  const Range range = executor_.memory().buffer(rank, kind);
  if (range.begin == range.end) return;
  what_ = &access;
  position_ = nobody;
  const uint32_t first = executor_.memory().cell(range, 0);
  over_ = agent(application(rank)).over;
  if (overwritten) used_[rank] = here(application(rank));
  for (uint32_t at = first; at < first + executor_.memory().count(range); ++at) {
    if (overwritten) check_readers(application(rank), at);
    write_it ? write(application(rank), at) : read(application(rank), at);
  }
}

bool Races::visible(uint32_t id, const Epoch& to) {
  const Agent& by = agent(id);
  const bool own = id == to.agent;
  if (own ? to.segment == by.segment : to.segment >= by.visible[to.agent]) return false;
  // A switch accesses memory by another address. A plain write is visible there only after an operation that
  // releases, and so is a switch's write at the plain address. Within the rank's own memory a release to the
  // device is enough. Otherwise it must be a release to all ranks.
  if (bool(to.switched) == what_->switched) return true;
  if (to.segment < by.reached[to.agent]) return true;
  const Agent& writer = agent(to.agent);
  const bool at_home =
      writer.kind == Agent::Kind::application || executor_.chains()[writer.chain].rank == what_->rank;
  return at_home && (!own || to.segment < by.released);
}
bool Races::over(uint32_t id, const Epoch& to) {
  return id == to.agent ? to.segment < agent(id).segment : to.segment < over_[to.agent];
}
/// Returns whether both accesses belong to one move. They need no order, because each thread accesses the
/// same position of every operand, one after the other. Another pair of the operation, or another turn of its
/// pipeline, may have the cell at another position of an operand, which another thread accesses.
bool Races::same_move(uint32_t id, const Epoch& to) { return id == to.agent && to.move == move_; }

/// Returns whether both are slices of one set. These do not overlap, wherever they end.
bool Races::disjoint_slices(const Epoch& one, const Epoch& other) {
  return one.set && one.set == other.set && one.member != other.member;
}

void Races::check(uint32_t id, uint32_t at, const Epoch& before, bool writes) {
  if (before.agent == nobody || disjoint_slices(here(id), before)) return;
  if (!visible(id, before) && !same_move(id, before)) conflict(id, at, before, writes, true);
}

void Races::read(uint32_t id, uint32_t at) {
  Cell& cell = cells_[at];
  if (what_->buffer == BufferKind::output && agent(id).kind != Agent::Kind::application) {
    // Data that the application left there may be read like any other written data.
    const Epoch& used = used_[what_->rank];
    const bool left = cell.write.agent == nobody && cell.writers == nobody;
    if (used.agent != nobody && !(left ? visible(id, used) : over(id, used)))
      conflict(id, at, used, false, true);
  }
  check(id, at, cell.write, false);
  for (uint32_t writer = cell.writers; writer != nobody; writer = pool_[writer].next)
    check(id, at, pool_[writer].epoch, false);
  add_reader(cell, here(id));
}

void Races::write(uint32_t id, uint32_t at) {
  check_writers(id, at);
  check_readers(id, at);
  cells_[at].write = here(id);
}

/// Checks a write against all earlier writes. A write of a whole cell must come after all accesses before it,
/// and replaces them. A write of a loose slice replaces only writes of the same slice.
void Races::check_writers(uint32_t id, uint32_t at) {
  Cell& cell = cells_[at];
  const Epoch now = here(id);
  check(id, at, cell.write, true);
  const auto replaced = [&](const Epoch& before) {
    return !now.set || (now.set == before.set && now.member == before.member);
  };
  for (uint32_t* slot = &cells_[at].writers; *slot != nobody;) {
    const uint32_t writer = *slot;
    check(id, at, pool_[writer].epoch, true);
    if (replaced(pool_[writer].epoch))
      drop(*slot);
    else
      slot = &pool_[writer].next;
  }
  if (cell.write.agent != nobody && !replaced(cell.write)) push(cell.writers, Epoch(cell.write));
}

void Races::read_packets(uint32_t id, uint32_t at, bool by_proxy) {
  Cell& cell = cells_[at];
  // The block has waited for the packets that its proxy reads.
  if (cell.write.agent != nobody && packet(at).again && !visible(id, cell.write) && !by_proxy)
    conflict(id, at, cell.write, false, true);
  const uint32_t told = packet(at).told;
  if (heard_.empty() || heard_.back() != told) heard_.push_back(told);
  if (!by_proxy) note_received(id, packet(at));
  add_reader(cell, here(id));
}

/// Returns whether the last packet in a cell has arrived. If another agent has read it, it has arrived. A
/// read by its writer proves nothing, because a block may see its own packet before others can.
bool Races::arrived(const Cell& cell) const {
  for (uint32_t at = cell.readers; at != nobody; at = pool_[at].next) {
    if (pool_[at].epoch.agent != cell.write.agent) return true;
  }
  return false;
}

/// Returns whether the launch of an access is known to have ended, because the next one has begun.
bool Races::ended(const Epoch& epoch) {
  const uint32_t rank = executor_.chains()[agent(epoch.agent).chain].rank;
  return over_[application(rank)] > 2 * launch_of(epoch) + 2;  // two segments per launch: see begin()
}

void Races::write_packets(uint32_t id, uint32_t at) {
  Cell& cell = cells_[at];
  const bool before = cell.write.agent != nobody;
  if (before && !arrived(cell) && !visible(id, cell.write)) conflict(id, at, cell.write, true, true);
  while (cell.writers != nobody) {
    const Epoch forwarded = pool_[cell.writers].epoch;
    if (!visible(id, forwarded) && !ended(forwarded)) conflict(id, at, forwarded, true, true);
    drop(cell.writers);
  }
  check_readers(id, at);
  packet(at) = {uint32_t(told_.size() - 1), uint32_t(sent_.size() - 1), position_,
                before && agent(cell.write.agent).launch_of(cell.write.segment) == launch_};
  cell.write = here(id);
}

void Races::check_readers(uint32_t id, uint32_t at) {
  const Epoch now = here(id);
  for (uint32_t* slot = &cells_[at].readers; *slot != nobody;) {
    const uint32_t reader = *slot;
    const Epoch& epoch = pool_[reader].epoch;
    if (!disjoint_slices(now, epoch) && !over(id, epoch) && !same_move(id, epoch) &&
        !told_of_read(at, epoch) && !knows_of_read(id, at, epoch))
      conflict(id, at, epoch, true, false);
    if (!now.set || (now.set == epoch.set && now.member == epoch.member))
      drop(*slot);
    else
      slot = &pool_[reader].next;
  }
}

void Races::add_reader(Cell& cell, const Epoch& epoch) {
  for (uint32_t at = cell.readers; at != nobody; at = pool_[at].next) {
    Epoch& known = pool_[at].epoch;
    if (known.agent != epoch.agent) continue;
    // If an agent has reached a segment, its earlier segments have ended. This says nothing about other moves
    // in the same segment.
    if (known.segment == epoch.segment && known.move != epoch.move) continue;
    if (epoch.set && (epoch.set != known.set || epoch.member != known.member)) continue;
    known = epoch;
    return;
  }
  push(cell.readers, epoch);
}

void Races::push(uint32_t& list, const Epoch& epoch) {
  if (free_ == nobody) {
    pool_.push_back({epoch, list});
    list = uint32_t(pool_.size() - 1);
    return;
  }
  const uint32_t at = free_;
  free_ = pool_[at].next;
  pool_[at] = {epoch, list};
  list = at;
}

void Races::drop(uint32_t& slot) {
  const uint32_t at = slot;
  slot = pool_[at].next;
  pool_[at].next = free_;
  free_ = at;
}

}  // namespace chorale::proof
