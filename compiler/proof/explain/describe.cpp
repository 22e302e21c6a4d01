// This file describes operations in words.

#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/lines.hpp"
#include "compiler/plan/report.hpp"
#include "compiler/plan/resolve.hpp"
#include "slice.hpp"

namespace chorale::proof {
namespace {

std::string chunks(BufferKind buffer, const Operand& operand) {
  return std::string(buffer_names[size_t(buffer)]) + "[" + number(operand.index) + ":" +
         number(operand.index + operand.size) + "]";
}

/// Names all operands on one side of an operation.
std::string operands(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, const Op& op, bool in_dst) {
  std::vector<std::string> words;
  const Operand* last = nullptr;
  for_each_place(plan, gpu, block, op,
                 [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                   if (field.in_dst != in_dst || &operand == last) return;
                   last = &operand;
                   std::string word = is_packet(field.role) ? "packets of " : "";
                   word += chunks(buffer, operand);
                   if (is_switched(field.role))
                     word += " of all members";
                   else if (rank != gpu.id)
                     word += " of " + rank_name(rank);
                   words.push_back(std::move(word));
                 });
  return list_words(words, most_told);
}

std::string channels(const Gpu& gpu, const ThreadBlock& block, const Op& op) {
  const OpInfo& row = info(op.code);
  std::vector<std::string> words;
  for (const uint32_t local : block.op_ids(op)) {
    if (row.has(Role::Arrive)) {
      words.push_back(number(local));
      break;
    }
    if (row.has(Role::Acquire) || row.has(Role::Release)) {
      words.push_back(number(local));
      continue;
    }
    const bool awaits = row.has(Role::Await) || row.has(Role::AwaitRelaxed);
    words.push_back(std::string(channel_type_names[size_t(op.via)]) + " channel " +
                    number(uint64_t(channel_id(block, op.via, local))) + (awaits ? " from " : " to ") +
                    rank_name(uint64_t(peer_of(gpu, block, op.via, local))));
  }
  return list_words(words, most_told);
}

}  // namespace

std::string describe(const Plan& plan, const OpPlace& at) {
  const Gpu& gpu = plan.gpus[at.rank];
  const ThreadBlock& block = gpu.threadblocks[at.threadblock];
  const Op& op = block.ops[at.op];
  std::string text(info(op.code).name);
  const std::string sources = operands(plan, gpu, block, op, false),
                    dests = operands(plan, gpu, block, op, true);
  if (!sources.empty()) text += " " + sources;
  if (!dests.empty()) text += (sources.empty() ? " " : " -> ") + dests;
  if (sources.empty() && dests.empty() && op.ids) text += " " + channels(gpu, block, op);
  return text;
}

std::string place_of(const Plan& plan, const OpPlace& at, bool after) {
  const Op& op = plan.gpus[at.rank].threadblocks[at.threadblock].ops[at.op];
  const SourceLine line = after ? last_line_of(plan, op) : plan.line_of(op);
  if (line.line) return line.file + ":" + number(line.line);
  return rank_name(at.rank) + ", thread block " + number(at.threadblock) + ", op " + number(at.op);
}

}  // namespace chorale::proof
