#pragma once
// Provides small plans for the tests of the compiler.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "chorale/compile.hpp"
#include "chorale/json.hpp"

namespace chorale {

inline Operand in(uint64_t index, uint64_t size = 1) { return {index, size, uint32_t(BufferKind::input)}; }
inline Operand out(uint64_t index, uint64_t size = 1) { return {index, size, uint32_t(BufferKind::output)}; }
inline Operand scratch(uint64_t index, uint64_t size = 1) {
  return {index, size, uint32_t(BufferKind::scratch)};
}
/// Returns a remote or switch operand: `ref` is 0 input, 1 output, 2 scratch of the peer; 0 output, 1 scratch
/// of the group.
inline Operand at(uint32_t ref, uint64_t index, uint64_t size = 1) { return {index, size, ref}; }

/// Returns an operand that is encoded by codec `codec` of the plan.
inline Operand coded(Operand operand, uint32_t codec = 0) {
  operand.codec = codec + 1;
  return operand;
}

/// Returns a plan of two ranks with 8 chunks of each buffer. It has two channels of each type with signals
/// between them, two switch channels over both, three semaphores, and two empty thread blocks that list all
/// of these.
inline Plan two_ranks() {
  Plan plan;
  plan.name = "two";
  plan.collective = "test";
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Gpu gpu;
    gpu.id = rank;
    for (uint64_t& chunks : gpu.chunks) chunks = 8;
    for (const ChannelType type : signalled_types)
      gpu.channels.push_back({.type = type, .connected_to = {1 - rank, 1 - rank}, .rank_groups = {}});
    for (const BufferKind buffer : {BufferKind::output, BufferKind::scratch}) {
      gpu.channels.push_back(
          {.type = ChannelType::switched, .connected_to = {}, .buffer = buffer, .rank_groups = {{0, 1}}});
    }
    for (const BufferKind buffer : {BufferKind::input, BufferKind::output, BufferKind::scratch}) {
      gpu.remote_buffers.push_back({1 - rank, buffer, {signalled_types.begin(), signalled_types.end()}});
    }
    gpu.semaphores = {0, 0, 0};
    for (uint32_t id = 0; id < 2; ++id) {
      ThreadBlock block;
      block.id = id;
      for (const ChannelType type : signalled_types) {
        block.channels.push_back({type, {0, 1}});
        block.remote_buffers.push_back({type, {0, 1, 2}});
      }
      block.channels.push_back({ChannelType::switched, {0, 1}});
      gpu.threadblocks.push_back(std::move(block));
    }
    plan.gpus.push_back(std::move(gpu));
  }
  return plan;
}

inline Op& add(ThreadBlock& block, Opcode code, std::vector<Operand> sources = {},
               std::vector<Operand> dests = {}, std::vector<uint32_t> ids = {},
               ChannelType via = ChannelType::none) {
  Op& op = append(block, code, sources, dests, ids);
  op.via = via;
  return op;
}

/// Gives a rank `blocks` thread blocks, which are copies of its last one.
inline void add_blocks(Plan& plan, uint32_t blocks, uint32_t rank = 0) {
  std::vector<ThreadBlock>& all = plan.gpus[rank].threadblocks;
  while (all.size() < blocks) {
    all.push_back(ThreadBlock(all.back()));
    all.back().id = uint32_t(all.size() - 1);
  }
}

inline ThreadBlock& block(Plan& plan, uint32_t rank = 0, uint32_t id = 0) {
  return plan.gpus[rank].threadblocks[id];
}

/// Returns the mnemonics of a block, with "(...)" around the bodies of pipelines.
inline std::string words(const Plan& plan, uint32_t rank = 0, uint32_t id = 0) {
  std::string text;
  size_t end = 0;
  const std::vector<Op>& ops = plan.gpus[rank].threadblocks[id].ops;
  for (size_t at = 0; at < ops.size(); ++at) {
    if (!text.empty() && text.back() != '(') text += ' ';
    text += info(ops[at].code).mnemonic;
    if (ops[at].body) {
      text += '(';
      end = at + ops[at].body;
    } else if (end && at == end) {
      text += ')';
      end = 0;
    }
  }
  return text;
}

/// Returns an operation as it is written in a plan file.
inline std::string text(const Plan& plan, size_t op, uint32_t rank = 0, uint32_t id = 0) {
  const ThreadBlock& block = plan.gpus[rank].threadblocks[id];
  return write(plan, block, block.ops.at(op), rank);
}

/// Posts on channel `id` of rank 0 and its wait at rank 1, or the other way round, so that the plan is
/// balanced.
inline void answer(Plan& plan, Opcode code, uint32_t id, ChannelType via, uint32_t rank = 1,
                   uint32_t on = 1) {
  add(block(plan, rank, on), code, {}, {}, {id}, via);
}

inline std::string all_texts(const Diagnostics& findings) {
  std::string text;
  for (const Diagnostic& finding : findings) text += "[" + finding.check + "] " + finding.text + "\n";
  return text;
}

/// Adds a pipeline of the next `body` operations.
inline Op& loop(Plan& plan, uint32_t body) {
  Op& op = add(block(plan), Opcode::pipeline);
  op.body = body;
  op.unit_bytes = 64;
  op.chunks = 1;
  return op;
}

/// Returns the mnemonics after one rewrite. The plan passes the first two checks before and after it.
inline std::string after(bool (*rewrite)(Plan&, const CompileOptions&), Plan& plan,
                         const CompileOptions& options = {}) {
  const auto sound = [&](const char* when) {
    Diagnostics found;
    pass::structure(plan, found);
    pass::bounds(plan, found);
    EXPECT_EQ(all_texts(found), "") << when;
  };
  const std::string before = write(plan);
  sound("before");
  const bool changed = rewrite(plan, options);
  sound("after");
  EXPECT_TRUE(changed || write(plan) == before);
  return words(plan);
}

}  // namespace chorale
