// This file describes operations in words.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/renderer.hpp"
#include "compiler/plan/report.hpp"

namespace chorale {
namespace {

std::string span_words(std::string_view buffer, uint64_t index, uint64_t size) {
  return std::string(buffer) + "[" + number(index) + ":" + number(index + size) + "]";
}

std::string ranks_words(const std::vector<uint32_t>& ranks) {
  std::vector<std::string> words;
  for (const uint32_t rank : ranks) words.push_back(number(rank));
  return "ranks " + list_words(words);
}

std::string buffer_word(uint32_t kind) {
  return kind < std::size(buffer_names) ? std::string(buffer_names[kind]) : "buffer ?";
}

/// Returns the rank-level id at position `ref` of a thread block's list; -1 if there is none.
template <class Refs>
int64_t lookup(const Refs* refs, uint32_t ref) {
  return refs && ref < refs->ids.size() ? int64_t(refs->ids[ref]) : -1;
}

/// Returns where an operand is, without its codec.
std::string place_words(const Gpu& gpu, const ThreadBlock& block, const Op& op, Role role,
                        const Operand& operand) {
  if (is_remote(role)) {
    const int64_t id = lookup(block.remote_buffers_of(op.via), operand.ref);
    if (id < 0 || size_t(id) >= gpu.remote_buffers.size()) {
      return span_words("remote buffer ?" + number(operand.ref), operand.index, operand.size);
    }
    const RemoteBuffer& remote = gpu.remote_buffers[size_t(id)];
    return span_words(buffer_word(uint32_t(remote.buffer)), operand.index, operand.size) + " of rank " +
           number(remote.rank);
  }
  if (is_switched(role)) {
    const int64_t id = lookup(block.channels_of(ChannelType::switched), operand.ref);
    const SwitchGroup group = id < 0 ? SwitchGroup{} : gpu.switch_group(uint32_t(id));
    if (!group.ranks)
      return span_words("switch channel ?" + number(operand.ref), operand.index, operand.size);
    return span_words(buffer_word(uint32_t(group.buffer)), operand.index, operand.size) + " of " +
           ranks_words(*group.ranks);
  }
  return span_words(buffer_word(operand.ref), operand.index, operand.size) +
         (is_packet(role) ? " as packets" : "");
}

std::string operand_words(const Gpu& gpu, const ThreadBlock& block, const Op& op, Role role,
                          const Operand& operand) {
  return place_words(gpu, block, op, role, operand) +
         (operand.codec ? " by codec " + number(operand.codec - 1) : "");
}

/// Returns the operands of one side in words, with the roles from the table.
std::vector<std::string> side_words(const Gpu& gpu, const ThreadBlock& block, const Op& op, bool in_dst) {
  std::vector<Role> one_by_one;
  const std::span<const Operand> operands = in_dst ? block.dests(op) : block.sources(op);
  const OpInfo& row = info(op.code);
  size_t fixed = 0;
  for (const Field& field : row.fields)
    fixed += is_operand(field.role) && field.in_dst == in_dst && !field.many;
  for (const Field& field : row.fields) {
    if (!is_operand(field.role) || field.in_dst != in_dst) continue;
    const size_t times = !field.many ? 1 : operands.size() > fixed ? operands.size() - fixed : 0;
    one_by_one.insert(one_by_one.end(), times, field.role);
  }
  std::vector<std::string> words;
  for (size_t at = 0; at < operands.size(); ++at) {
    const Role role = at < one_by_one.size() ? one_by_one[at] : Role::Read;
    words.push_back(operand_words(gpu, block, op, role, operands[at]));
  }
  return words;
}

std::string channel_words(const Gpu& gpu, const ThreadBlock& block, const Op& op, uint32_t ref) {
  const int64_t id = lookup(block.channels_of(op.via), ref);
  if (id < 0) return "channel ?" + number(ref);
  if (is_switched(op.via)) {
    const SwitchGroup group = gpu.switch_group(uint32_t(id));
    return group.ranks ? ranks_words(*group.ranks) : "channel ?" + number(ref);
  }
  const int64_t peer = gpu.peer(op.via, uint32_t(id));
  return (peer < 0 ? "rank ?" : "rank " + number(uint64_t(peer))) + " (" +
         std::string(channel_type_names[size_t(op.via)]) + " channel " + number(uint64_t(id)) + ")";
}

}  // namespace

std::string op_words(const Gpu& gpu, const ThreadBlock& block, const Op& op, size_t most) {
  const OpInfo& row = info(op.code);
  std::string line(row.name);
  const std::vector<std::string> from = side_words(gpu, block, op, false),
                                 to = side_words(gpu, block, op, true);
  const std::string operation = row.has(Role::Reduce) ? reduce_op_name(op.reduce_op) : "";
  if (!operation.empty()) line += " " + operation;
  if (!from.empty()) line += " " + list_words(from, most);
  if (!to.empty()) line += " -> " + list_words(to, most);

  std::vector<std::string> named;
  if (row.has(Role::Acquire) || row.has(Role::Release)) {
    for (const uint32_t id : block.op_ids(op)) named.push_back("semaphore " + number(id));
  } else if (row.has(Role::Arrive)) {
    named.push_back(op.ids ? number(block.op_ids(op)[0]) : "?");
    named.push_back("with " + count(op.participants, "thread block"));
  } else {
    for (const uint32_t ref : block.op_ids(op)) named.push_back(channel_words(gpu, block, op, ref));
  }
  const bool posts = row.has(Role::Post) || row.has(Role::PostRelaxed);
  if (!named.empty())
    line += (to.empty() ? " " : posts ? ", then signals " : " through ") + list_words(named, most);
  if (named.empty() && has_signals(op.via)) {
    line += " (" + std::string(channel_type_names[size_t(op.via)]) + ")";
  }
  if (row.has(Role::Loop)) {
    line += " over " + count(op.chunks, "chunk") + " in units of " + count(op.unit_bytes, "byte") +
            ": the next " + count(op.body, "operation");
  }
  if (op.group_size) line += ", part " + number(op.group_index) + " of " + number(op.group_size);
  return line;
}

}  // namespace chorale
