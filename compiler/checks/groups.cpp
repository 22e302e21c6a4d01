// This check requires every member of a thread block group to take its share. What is written in n slices
// must be written by members 0 to n - 1. The DSL always records whole groups. In a plan written by hand a
// member may be missing, and its slice of the result is missing then. Slices are identified by what they
// write, because rewrites may join the operations of different members with different neighbours.
//
// This costs O(n log n) for n shared operations.

#include <map>
#include <set>
#include <tuple>

#include "chorale/checks.hpp"
#include "compiler/plan/report.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

/// Names a write that several thread blocks share: rank, role, channel type, rank-level id of the remote
/// buffer or the local buffer, chunks, and number of members.
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
