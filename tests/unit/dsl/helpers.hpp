#pragma once
// Provides helpers for the tests of the DSL.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "chorale/dsl.hpp"

namespace chorale::dsl {

/// Returns a program of two ranks with four chunks of input and of output each.
inline Program two_ranks(Here at = Here::current()) {
  return Program({.name = "two", .collective = TestCollective{.ranks = 2, .input = 4, .output = 4}}, at);
}

inline std::vector<std::string> texts(const Program& program) {
  std::vector<std::string> all;
  for (const Diagnostic& one : program.diagnostics()) all.push_back(one.text);
  return all;
}

/// Returns all operations of a block as text: the mnemonic, then the operands. They are 'i', 'o' or 's' for
/// local buffers, 'r' and the local number for remote ones, 'w' for switch channels, each with [index,end).
/// Then come "c" and the local ids.
inline std::vector<std::string> ops(const Plan& plan, uint32_t rank, size_t position = 0) {
  std::vector<std::string> all;
  const ThreadBlock& block = plan.gpus.at(rank).threadblocks.at(position);
  for (const Op& op : block.ops) {
    const OpInfo& row = info(op.code);
    std::string text(row.mnemonic);
    const auto operands = [&](bool in_dst, std::span<const Operand> list) {
      std::vector<Role> roles;
      for (const Field& field : row.fields) {
        if (is_operand(field.role) && field.in_dst == in_dst) roles.push_back(field.role);
      }
      for (size_t k = 0; k < list.size(); ++k) {
        const Role role = roles[std::min(k, roles.size() - 1)];
        text += in_dst && k == 0 ? " > " : " ";
        if (is_remote(role)) {
          text += "r" + std::to_string(list[k].ref);
        } else if (is_switched(role)) {
          text += "w" + std::to_string(list[k].ref);
        } else {
          text += buffer_letters[list[k].ref];
        }
        text +=
            "[" + std::to_string(list[k].index) + "," + std::to_string(list[k].index + list[k].size) + ")";
      }
    };
    operands(false, block.sources(op));
    operands(true, block.dests(op));
    for (const uint32_t id : block.op_ids(op)) text += " c" + std::to_string(id);
    if (op.via != ChannelType::none) text += " " + std::string(channel_type_names[size_t(op.via)]);
    if (op.group_size > 0) text += " " + std::to_string(op.group_index) + "/" + std::to_string(op.group_size);
    if (row.has(Role::Reduce)) text += std::string(" ") + reduce_op_name(op.reduce_op);
    if (row.has(Role::Arrive)) text += " of " + std::to_string(op.participants);
    if (row.has(Role::Loop)) {
      text += " " + std::to_string(op.unit_bytes) + "x" + std::to_string(op.chunks) + " body " +
              std::to_string(op.body);
    }
    all.push_back(text);
  }
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace chorale::dsl
