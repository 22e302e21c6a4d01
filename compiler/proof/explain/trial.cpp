#include "trial.hpp"

#include <algorithm>
#include <utility>

#include "compiler/plan/resolve.hpp"
#include "compiler/proof/values/values.hpp"
#include "paths.hpp"

namespace chorale::proof {

using Who = ProofEvent::Who;

Trial::Trial(const History& history, const Finding& finding)
    : plan_(history.executor().plan()),
      memory_(history.executor().memory()),
      launches_(launches_of(finding)),
      setting_(finding.setting) {
  events_ = finding.events;
  for (ProofEvent& event : events_) {
    if (event.who != Who::application) event.segment = History::any;
  }
}

void Trial::insert(const OpPlace& before, Opcode code, const std::vector<uint32_t>& ids, ChannelType via) {
  ThreadBlock& block = block_of(before);
  Op op;
  op.code = code;
  op.via = via;
  op.first_id = uint32_t(block.ids.size());
  op.ids = uint16_t(ids.size());
  op.first_operand = uint32_t(block.operands.size());
  block.ids.insert(block.ids.end(), ids.begin(), ids.end());
  block.ops.insert(block.ops.begin() + before.op, op);
  move_back(before);
}

void Trial::insert_signal(const OpPlace& from, const OpPlace& to) {
  add_channel(from.rank, to.rank);
  insert(from, Opcode::signal, {newest_channel(from)}, ChannelType::memory);
  insert(to, Opcode::wait, {newest_channel(to)}, ChannelType::memory);
}

void Trial::insert_semaphore(const OpPlace& from, const OpPlace& to) {
  std::vector<int64_t>& semaphores = plan_.gpus[from.rank].semaphores;
  semaphores.push_back(0);
  const std::vector<uint32_t> id = {uint32_t(semaphores.size() - 1)};
  insert(to, Opcode::sem_acquire, id);
  insert(from, Opcode::sem_release, id);
}

void Trial::insert_barrier(const OpPlace& one, const OpPlace& other) {
  uint32_t free = 0;
  for (const ThreadBlock& block : plan_.gpus[one.rank].threadblocks) {
    for (const Op& op : block.ops) {
      if (op.code == Opcode::barrier) free = std::max(free, block.op_ids(op)[0] + 1);
    }
  }
  for (const OpPlace& at : {one, other}) {
    insert(at, Opcode::barrier, {free});
    op(at).participants = 2;
  }
}

void Trial::move_wait(const OpPlace& from, const OpPlace& to) {
  ThreadBlock& block = block_of(from);
  const Op op = block.ops[from.op];
  std::vector<uint32_t> ids;
  for (const uint32_t id : block.op_ids(op)) {
    ids.push_back(op.via == ChannelType::none ? id
                                              : local_channel(to, op.via, channel_of(block, op.via, id)));
  }
  block.ops.erase(block.ops.begin() + from.op);
  for (ProofEvent& event : events_) {
    if (event.who != Who::application && same_block(event.at, from) && event.at.op > from.op) --event.at.op;
  }
  insert(to, op.code, ids, op.via);
}

void Trial::move_up(const OpPlace& from, uint32_t to) {
  std::vector<Op>& ops = block_of(from).ops;
  std::rotate(ops.begin() + to, ops.begin() + from.op, ops.begin() + from.op + 1);
  move_back({from.rank, from.threadblock, to}, from.op);
}

void Trial::move_down(const OpPlace& from, uint32_t to) {
  std::vector<Op>& ops = block_of(from).ops;
  std::rotate(ops.begin() + from.op, ops.begin() + from.op + 1, ops.begin() + to + 1);
  for (ProofEvent& event : events_) {
    if (event.who == Who::application || !same_block(event.at, from)) continue;
    if (event.at.op == from.op)
      event.at.op = to;
    else if (event.at.op > from.op && event.at.op <= to)
      --event.at.op;
  }
}

bool Trial::orders(bool reversed) const {
  SymbolicExecutor executor(plan_, memory_);
  History history(executor);
  Choices choices(setting_.choices);
  if (!executor.run(launches_, choices, history) || !history.complete()) return false;
  const uint32_t first = history.find(events_[0]), second = history.find(events_[1]);
  if (first == History::none || second == History::none) return false;
  return reversed ? Past(history, first, events_[1].writes).has(second)
                  : Past(history, second, events_[0].writes).has(first);
}

std::optional<uint64_t> Trial::wrong_outputs(bool reversed) const {
  SymbolicExecutor executor(plan_, memory_);
  History history(executor);
  Findings findings(plan_, {});
  Holding holding(executor, findings, false);
  Choices choices(setting_.choices), same(setting_.choices);
  if (!executor.run(1, choices, history) || !history.complete()) return {};
  const uint32_t first = history.find(events_[0]), second = history.find(events_[1]);
  if (first == History::none || second == History::none || (second < first) != reversed) return {};
  executor.run(1, same, holding);
  holding.compare();
  return holding.wrong();
}

void Trial::move_back(OpPlace from, uint32_t end) {
  for (ProofEvent& event : events_) {
    if (event.who != Who::application && same_block(event.at, from) && event.at.op >= from.op &&
        event.at.op < end)
      ++event.at.op;
  }
}

void Trial::add_channel(uint32_t from, uint32_t to) {
  for (const auto& [rank, peer] : {std::pair(from, to), std::pair(to, from)}) {
    std::vector<ChannelRecord>& records = plan_.gpus[rank].channels;
    // This appends to the last record. Anywhere else it would change the ids of later channels.
    const auto last = std::find_if(records.rbegin(), records.rend(), [](const ChannelRecord& record) {
      return record.type == ChannelType::memory;
    });
    ChannelRecord& record = last != records.rend() ? *last : records.emplace_back();
    record.connected_to.push_back(peer);
  }
}

uint32_t Trial::newest_channel(const OpPlace& at) {
  return local_channel(at, ChannelType::memory, plan_.gpus[at.rank].channel_count(ChannelType::memory) - 1);
}

uint32_t Trial::local_channel(const OpPlace& at, ChannelType type, uint32_t channel) {
  ThreadBlock& block = block_of(at);
  for (ChannelRefs& refs : block.channels) {
    if (refs.type != type) continue;
    refs.ids.push_back(channel);
    return uint32_t(refs.ids.size() - 1);
  }
  block.channels.push_back({type, {channel}});
  return 0;
}

uint32_t Trial::channel_of(const ThreadBlock& block, ChannelType type, uint32_t position) {
  for (const ChannelRefs& refs : block.channels) {
    if (refs.type == type) return refs.ids[position];
  }
  return 0;
}

}  // namespace chorale::proof
