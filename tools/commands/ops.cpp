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

/// Names a role and explains it to a reader.
struct RoleWords {
  std::string_view name, meaning;
};
constexpr RoleWords role_words[] = {
    // in the order of Role
    {"Read", "chunks here, read"},
    {"Write", "chunks here, overwritten"},
    {"PacketRead", "packets in scratch here, waited for and read"},
    {"PacketWrite", "packets in scratch here, written"},
    {"RemoteRead", "chunks at a peer, read"},
    {"RemoteWrite", "chunks at a peer, overwritten"},
    {"RemotePacketWrite", "packets in a peer's scratch, written"},
    {"SwitchRead", "the region of every member of a switch channel, read"},
    {"SwitchWrite", "the region of every member of a switch channel, overwritten"},
    {"SwitchPacketWrite", "packets in the scratch of every member of a switch channel, written"},
    {"Via", "`channel_type`: the kind of channel"},
    {"Channels", "`channel_ids`: channels that name the peer"},
    {"PortChannels", "`channel_ids`, for port channels only"},
    {"Post", "`channel_ids`: posted at the peer, after all earlier operations"},
    {"PostRelaxed", "`channel_ids`: posted at the peer, without any order"},
    {"Await", "`channel_ids`: awaited, after which the peer's published data is visible"},
    {"AwaitRelaxed", "`channel_ids`: awaited, without any order"},
    {"Drain", "`channel_ids`: port channels whose transfers are waited for"},
    {"Acquire", "`semaphore_ids`: taken"},
    {"Release", "`semaphore_ids`: given"},
    {"Arrive", "`barrier_id`, `num_threadblocks`: the barrier and the number of its blocks"},
    {"Reduce", "`reduce_op`: how elements are combined"},
    {"Sliced", "`tbg_info`, optional: the blocks of a group share the work"},
    {"Loop", "`iter_context`: the unit and the chunks of the loop; `ops`: its body"},
};
static_assert(std::size(role_words) == size_t(Role::Loop) + 1, "a role has no words here");

std::string role_name(Role role) { return std::string(role_words[size_t(role)].name); }

std::string operands(const OpInfo& op, bool in_dst) {
  std::string text;
  for (const Field& field : op.fields) {
    if (!is_operand(field.role) || field.in_dst != in_dst) continue;
    text += (text.empty() ? "" : ", ") + std::string(field.name) + (field.many ? "..." : "") + ": " +
            role_name(field.role);
  }
  return text;
}

std::string attributes(const OpInfo& op) {
  std::string text;
  for (const Field& field : op.fields) {
    if (!is_operand(field.role)) text += (text.empty() ? "" : ", ") + role_name(field.role);
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
      std::cout << "| " << role_name(role) << " | " << role_words[size_t(role)].meaning << " |\n";
    return Exit::well;
  };
}

}  // namespace chorale::tools
