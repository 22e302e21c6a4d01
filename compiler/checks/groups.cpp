// Every member of a thread block group does its share: what is written in n slices is written by members 0 to
// n - 1. The DSL records a group as a whole; in a plan by hand a member may be missing, and then a slice of
// the result is. Slices are told apart by what they write, because rewrites may join the operations of the
// members with different neighbours.
//
// This costs O(n log n) for the operations that are shared.

#include <map>
#include <set>
#include <tuple>

#include "../plan/report.hpp"
#include "../plan/resolve.hpp"
#include "../plan/roles.hpp"
#include "chorale/compile.hpp"

namespace chorale {
namespace {

/// Names a write that several thread blocks share: rank, role, channel type, rank-level id of the remote
/// buffer or the local buffer, chunks, and members.
using Shared = std::tuple<uint32_t, Role, ChannelType, int64_t, uint64_t, uint64_t, uint32_t>;

struct Members {
  OpPlace first;
  std::set<uint32_t> found;  // positions in the group
};

}  // namespace

void pass::groups(const Plan& plan, Diagnostics& out) {
  Report report("groups", out);
  std::map<Shared, Members> writes;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!op.group_size) return;
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (!is_write(field.role)) return;
      const int64_t where =
          is_remote(field.role) ? remote_buffer_id(block, op.via, operand.ref) : operand.ref;
      const auto [entry, added] =
          writes.try_emplace({gpu.id, field.role, op.via, where, operand.index, operand.size, op.group_size});
      if (added) entry->second = {at, {}};
      entry->second.found.insert(op.group_index);
    });
  });
  for (const auto& [shared, members] : writes) {
    const uint32_t size = std::get<6>(shared);
    if (members.found.size() == size) continue;
    uint32_t missing = 0;
    while (members.found.contains(missing)) ++missing;
    report.add(members.first,
               "this operation is shared by a group of " + count(size, "thread block") +
                   ", but no thread block is member " + number(missing) + " and takes that slice",
               "give every member of the group its operation, or leave the group out", "tbg_info");
  }
}

}  // namespace chorale
