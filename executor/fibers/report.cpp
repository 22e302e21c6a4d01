#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "chorale/diagnostic.hpp"

namespace chorale::fibers {
namespace {

constexpr size_t most_lines = 32;

/// Returns the position, among the ids of an operation, of the channel that a stuck block waits on, or
/// nothing if it waits on none.
std::optional<size_t> awaited_id(const Plan& plan, const ThreadBlock& block, const Op& op,
                                 const Stuck& stuck) {
  const OpInfo& row = info(op.code);
  const bool drains = row.has(Role::Drain);
  const ChannelRefs* refs = block.channels_of(op.via);
  if (!refs || !(drains || row.has(Role::Await) || row.has(Role::AwaitRelaxed))) return {};
  const std::span<const uint32_t> ids = block.op_ids(op);
  for (size_t position = 0; position < ids.size(); ++position) {
    if (ids[position] >= refs->ids.size()) continue;
    const int64_t peer = plan.gpus[size_t(stuck.rank)].peer(op.via, refs->ids[ids[position]]);
    if (drains || peer == stuck.waiting.peer) return position;
  }
  return {};
}

/// Returns the text after the op's name, such as " on semaphore 1" or " on memory channel 2 from rank 2", or
/// "" if the operation has none of these.
std::string awaited(const Plan& plan, const ThreadBlock& block, const Op& op, const Stuck& stuck) {
  const OpInfo& row = info(op.code);
  const std::span<const uint32_t> ids = block.op_ids(op);
  if (row.has(Role::Acquire)) return fmt::format(" on semaphore {}", fmt::join(ids, ", "));
  if (row.has(Role::Arrive)) return fmt::format(" {}, which {} thread blocks join", ids[0], op.participants);
  if (const std::optional<size_t> position = awaited_id(plan, block, op, stuck)) {
    const uint32_t channel = block.channels_of(op.via)->ids[ids[*position]];
    return fmt::format(" on {} channel {} {} rank {}", channel_type_names[size_t(op.via)], channel,
                       row.has(Role::Drain) ? "to" : "from",
                       plan.gpus[size_t(stuck.rank)].peer(op.via, channel));
  }
  // A block ends when the proxy has done all its requests, and its last operation includes this wait.
  if (has_proxy(op.via) && stuck.waiting.peer == stuck.rank && !ids.empty()) {
    const ChannelRefs* refs = block.channels_of(op.via);
    if (refs && ids[0] < refs->ids.size()) {
      return fmt::format(" on {} channel {} to rank {}", channel_type_names[size_t(op.via)],
                         refs->ids[ids[0]], plan.gpus[size_t(stuck.rank)].peer(op.via, refs->ids[ids[0]]));
    }
  }
  if (stuck.waiting.peer >= 0 && stuck.waiting.peer != stuck.rank) {
    return fmt::format(" until rank {} runs this plan", stuck.waiting.peer);
  }
  return "";
}

}  // namespace

std::string line(const Plan& plan, const Stuck& stuck) {
  std::string text = fmt::format("  rank {} block {}", stuck.rank, stuck.block);
  const auto& blocks = plan.gpus[size_t(stuck.rank)].threadblocks;
  if (size_t(stuck.block) >= blocks.size()) return text + " (proxy)";
  const ThreadBlock& block = blocks[size_t(stuck.block)];
  if (!stuck.waiting.what || stuck.waiting.op_index >= block.ops.size()) return text + ": not begun";
  const Op& op = block.ops[stuck.waiting.op_index];
  const std::optional<size_t> position = awaited_id(plan, block, op, stuck);
  const SourceLine place = position ? line_of_entry(plan, op, OpList::ids, *position) : plan.line_of(op);
  text += fmt::format(" op {}{} {}", stuck.waiting.op_index,
                      place.line ? fmt::format(" ({}:{})", place.file, place.line) : "", info(op.code).name);
  if (!stuck.parked) return text + ": was running";
  text += awaited(plan, block, op, stuck);
  if (stuck.waiting.word) {
    return text + fmt::format(": expected {}, seen {}", stuck.waiting.expected, stuck.seen);
  }
  for (const Field& field : info(op.code).fields) {
    if (field.role == Role::PacketRead)
      return text + fmt::format(": waits for packets of run {}", stuck.waiting.expected);
  }
  return text + ": waits";
}

std::string describe(const std::vector<Stuck>& all, Ranks ranks, const std::string& said) {
  std::vector<Stuck> stuck;
  for (const Stuck& one : all) {
    if (!one.line.empty() && said.find(one.line) == std::string::npos) stuck.push_back(one);
  }
  // Count the waits between each rank and a rank that waits for no other. That root comes first.
  std::map<int, std::set<int>> waits_for;
  for (const Stuck& one : stuck) {
    std::set<int>& peers = waits_for[one.rank];
    if (one.parked && one.waiting.peer >= 0 && one.waiting.peer != one.rank) peers.insert(one.waiting.peer);
  }
  std::set<int> absent;
  for (const auto& [rank, peers] : waits_for) {
    for (const int peer : peers) {
      if (!waits_for.count(peer)) absent.insert(peer);
    }
  }
  std::map<int, size_t> distance;
  for (const int rank : absent) distance[rank] = 0;
  for (const auto& [rank, peers] : waits_for) {
    if (peers.empty()) distance[rank] = 0;
  }
  for (size_t round = 1; round <= waits_for.size(); ++round) {
    for (const auto& [rank, peers] : waits_for) {
      if (distance.count(rank)) continue;
      for (const int peer : peers) {
        const auto found = distance.find(peer);
        if (found != distance.end() && found->second < round) {
          distance[rank] = round;
          break;
        }
      }
    }
  }
  const auto far = [&](const Stuck& one) {
    const auto found = distance.find(one.rank);
    return found == distance.end() ? waits_for.size() + 1 : found->second;
  };
  std::stable_sort(stuck.begin(), stuck.end(),
                   [&](const Stuck& a, const Stuck& b) { return far(a) < far(b); });

  std::string text;
  if (ranks == Ranks::all) {
    for (const int rank : absent) {
      const std::string nothing = fmt::format("\n  rank {}: no unfinished block of this plan here", rank);
      if (said.find(nothing) == std::string::npos) text += nothing;
    }
  }
  for (size_t at = 0; at < std::min(stuck.size(), most_lines); ++at) text += "\n" + stuck[at].line;
  if (stuck.size() > most_lines) text += fmt::format("\n  and {} more blocks", stuck.size() - most_lines);
  return text;
}

}  // namespace chorale::fibers
