#include "usage.hpp"

#include <algorithm>

#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale {
namespace {

/// Visits the chunks of a read as ranges. Packets are visited by chunk and by byte, as in overlap().
template <class Visit>
void each_range(const Access& access, Visit&& visit) {
  visit(access.begin, access.end);
  if (access.packets) visit(2 * access.begin, 2 * access.end);
}

/// Calls visit(kind, rank-level id) for everything that `op` waits on.
template <class Visit>
void each_wait(const ThreadBlock& block, const Op& op, Visit&& visit) {
  const Shape& row = shape(op.code);
  const bool awaits = row.has_any(await_roles);
  if (!awaits && !row.has(Role::Acquire)) return;
  for (const uint32_t id : block.op_ids(op)) {
    visit(awaits ? op.via : ChannelType::none, awaits ? channel_id(block, op.via, id) : int64_t(id));
  }
}

}  // namespace

Readers::Readers(const Plan& plan) : by_rank_(plan.gpus.size()) {
  std::vector<Access> accesses;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace) {
    accesses.clear();
    list_accesses(plan, gpu, block, op, true, accesses);
    for (const Access& access : accesses) {
      if (access.write) continue;
      Ends& ends = by_rank_[access.rank][size_t(access.buffer)];
      each_range(access, [&](uint64_t begin, uint64_t end) {
        ends.begins.push_back(begin);
        ends.ends.push_back(end);
      });
    }
  });
  for (std::array<Ends, 3>& buffers : by_rank_) {
    for (Ends& ends : buffers) {
      std::sort(ends.begins.begin(), ends.begins.end());
      std::sort(ends.ends.begin(), ends.ends.end());
    }
  }
}

size_t Readers::count(const Access& access) const {
  const Ends& ends = by_rank_[access.rank][size_t(access.buffer)];
  // The result is the number of reads that begin before our end, less those that end before our begin.
  const auto begun =
      std::lower_bound(ends.begins.begin(), ends.begins.end(), access.end) - ends.begins.begin();
  const auto ended = std::upper_bound(ends.ends.begin(), ends.ends.end(), access.begin) - ends.ends.begin();
  return size_t(begun - ended);
}

size_t Readers::count(const std::vector<Access>& accesses, const Access& touched) {
  size_t found = 0;
  for (const Access& access : accesses) {
    if (access.write || access.rank != touched.rank || access.buffer != touched.buffer) continue;
    each_range(access,
               [&](uint64_t begin, uint64_t end) { found += begin < touched.end && touched.begin < end; });
  }
  return found;
}

Waiters::Waiters(const Gpu& gpu) {
  for (size_t position = 0; position < gpu.threadblocks.size(); ++position) {
    const ThreadBlock& block = gpu.threadblocks[position];
    for (const Op& op : block.ops) {
      each_wait(block, op, [&](ChannelType kind, int64_t id) {
        if (id < 0) return;
        std::vector<int64_t>& blocks = blocks_[size_t(kind)];
        if (size_t(id) >= blocks.size()) blocks.resize(size_t(id) + 1, nobody);
        int64_t& waiter = blocks[size_t(id)];
        waiter = waiter == nobody || waiter == int64_t(block.id) ? int64_t(block.id) : several;
      });
    }
  }
}

bool Waiters::only(const ThreadBlock& block, const Op& op) const {
  bool alone = true;
  each_wait(block, op, [&](ChannelType kind, int64_t id) {
    const std::vector<int64_t>& blocks = blocks_[size_t(kind)];
    alone &= id >= 0 && size_t(id) < blocks.size() && blocks[size_t(id)] == int64_t(block.id);
  });
  return alone;
}

}  // namespace chorale
