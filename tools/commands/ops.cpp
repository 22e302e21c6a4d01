// chorale ops writes docs/ops.md and docs/plan.schema.json from the table of operations.

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>

#include "chorale/plan.hpp"
#include "tools/command.hpp"
#include "tools/plan_schema.hpp"

namespace chorale::tools {
namespace {

/// Explains a role to a reader. The switch has no default, so a role without a row stops the build.
const char* meaning(Role role) {
  switch (role) {
    case Role::Read:
      return "chunks here, read";
    case Role::Write:
      return "chunks here, overwritten";
    case Role::PacketRead:
      return "packets in scratch here, waited for and read";
    case Role::PacketWrite:
      return "packets in scratch here, written";
    case Role::RemoteRead:
      return "chunks at a peer, read";
    case Role::RemoteWrite:
      return "chunks at a peer, overwritten";
    case Role::RemotePacketWrite:
      return "packets in a peer's scratch, written";
    case Role::SwitchRead:
      return "the region of every member of a switch channel, read";
    case Role::SwitchWrite:
      return "the region of every member of a switch channel, overwritten";
    case Role::SwitchPacketWrite:
      return "packets in the scratch of every member of a switch channel, written";
    case Role::Via:
      return "`channel_type`: the kind of channel";
    case Role::Channels:
      return "`channel_ids`: channels that name the peer";
    case Role::PortChannels:
      return "`channel_ids`, for port channels only";
    case Role::Post:
      return "`channel_ids`: posted at the peer, after all earlier operations";
    case Role::PostRelaxed:
      return "`channel_ids`: posted at the peer, without any order";
    case Role::Await:
      return "`channel_ids`: awaited, after which the peer's published data is visible";
    case Role::AwaitRelaxed:
      return "`channel_ids`: awaited, without any order";
    case Role::Drain:
      return "`channel_ids`: port channels whose transfers are waited for";
    case Role::Acquire:
      return "`semaphore_ids`: taken";
    case Role::Release:
      return "`semaphore_ids`: given";
    case Role::Arrive:
      return "`barrier_id`, `num_threadblocks`: the barrier and the number of its blocks";
    case Role::Reduce:
      return "`reduce_op`: how elements are combined";
    case Role::Sliced:
      return "`tbg_info`, optional: the blocks of a group share the work";
    case Role::Loop:
      return "`iter_context`: the unit and the chunks of the loop; `ops`: its body";
  }
  return "";
}

std::string_view role_name(Role role) {
  static constexpr std::string_view names[] = {"Read",
                                               "Write",
                                               "PacketRead",
                                               "PacketWrite",
                                               "RemoteRead",
                                               "RemoteWrite",
                                               "RemotePacketWrite",
                                               "SwitchRead",
                                               "SwitchWrite",
                                               "SwitchPacketWrite",
                                               "Via",
                                               "Channels",
                                               "PortChannels",
                                               "Post",
                                               "PostRelaxed",
                                               "Await",
                                               "AwaitRelaxed",
                                               "Drain",
                                               "Acquire",
                                               "Release",
                                               "Arrive",
                                               "Reduce",
                                               "Sliced",
                                               "Loop"};
  static_assert(std::size(names) == size_t(Role::Loop) + 1);
  return names[size_t(role)];
}

std::string operands(const OpInfo& op, bool in_dst) {
  std::string text;
  for (const Field& field : op.fields) {
    if (!is_operand(field.role) || field.in_dst != in_dst) continue;
    text += (text.empty() ? "" : ", ") + std::string(field.name) + (field.many ? "..." : "") + ": " +
            std::string(role_name(field.role));
  }
  return text;
}

std::string attributes(const OpInfo& op) {
  std::string text;
  for (const Field& field : op.fields) {
    if (!is_operand(field.role)) text += (text.empty() ? "" : ", ") + std::string(role_name(field.role));
  }
  return text;
}

}  // namespace

Action command::ops(CLI::App& app) {
  auto schema = std::make_shared<bool>(false);
  app.add_flag("--schema", *schema, "Print the JSON schema of plan files instead, as docs/plan.schema.json");
  return [schema] {
    if (*schema) {
      std::cout << plan_schema();
      return Exit::well;
    }
    std::cout
        << "# Operations\n\n"
           "`chorale ops` makes this page from `compiler/include/chorale/ops.def`; do not edit it.\n\n"
           "*name* is the word in C++ and in messages, and *in plans* is the word in plan files. "
           "`x...` stands for one or\nmore operands. The operands of *from* are in `src_buff` and those "
           "of *to* in `dst_buff`, in this order. *attributes*\nlists what else an operation carries."
           "\n\n| name | in plans | from | to | attributes | meaning |\n|---|---|---|---|---|---|\n";
    std::map<Role, bool> used;
    for (const OpInfo& op : op_table()) {
      std::cout << "| " << op.name << " | `" << op.mnemonic << "` | " << operands(op, false) << " | "
                << operands(op, true) << " | " << attributes(op) << " | " << op.summary << " |\n";
      for (const Field& field : op.fields) used[field.role] = true;
    }
    std::cout << "\n## Roles\n\n| role | meaning |\n|---|---|\n";
    for (const auto& [role, _] : used)
      std::cout << "| " << role_name(role) << " | " << meaning(role) << " |\n";
    return Exit::well;
  };
}

}  // namespace chorale::tools
