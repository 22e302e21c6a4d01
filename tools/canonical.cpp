#include "tools/canonical.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace chorale::tools {
namespace {

constexpr uint32_t unused = UINT32_MAX;

/// Calls use(position) for each position of a thread block's list of channels that an operation uses, in
/// order.
template <class Use>
void each_channel(ThreadBlock& block, Op& op, ChannelType type, Use&& use) {
  const OpInfo& row = info(op.code);
  const bool ids_are_channels = !row.has(Role::Acquire) && !row.has(Role::Release) && !row.has(Role::Arrive);
  if (ids_are_channels && op.via == type) {
    for (uint32_t at = 0; at < op.ids; ++at) use(block.ids[op.first_id + at]);
  }
}

/// Calls use(role, operand) for every operand, with the role that the table gives it.
template <class Use>
void each_operand(ThreadBlock& block, Op& op, Use&& use) {
  for (const bool in_dst : {false, true}) {
    const std::span<Operand> operands = in_dst ? block.dests(op) : block.sources(op);
    const OpInfo& row = info(op.code);
    size_t fixed = 0, at = 0;
    for (const Field& field : row.fields)
      fixed += is_operand(field.role) && field.in_dst == in_dst && !field.many;
    for (const Field& field : row.fields) {
      if (!is_operand(field.role) || field.in_dst != in_dst) continue;
      size_t times = !field.many ? 1 : operands.size() > fixed ? operands.size() - fixed : 0;
      for (; times && at < operands.size(); --times, ++at) use(field.role, operands[at]);
    }
  }
}

/// Orders a list by first use and drops unused entries. `visit(use)` calls use(position) with a reference.
template <class Refs, class Visit>
void order_by_use(Refs& refs, Visit&& visit) {
  std::vector<uint32_t> place(refs.ids.size(), unused), ids;
  visit([&](uint32_t& position) {
    if (position >= place.size()) return;
    if (place[position] == unused) {
      place[position] = uint32_t(ids.size());
      ids.push_back(refs.ids[position]);
    }
    position = place[position];
  });
  refs.ids = std::move(ids);
}

void canonicalise_block(ThreadBlock& block) {
  for (ChannelRefs& refs : block.channels) {
    order_by_use(refs, [&](auto&& use) {
      for (Op& op : block.ops) {
        each_channel(block, op, refs.type, use);
        each_operand(block, op, [&](Role role, Operand& operand) {
          if (is_switched(role) && is_switched(refs.type)) use(operand.ref);
        });
      }
    });
  }
  for (RemoteBufferRefs& refs : block.remote_buffers) {
    order_by_use(refs, [&](auto&& use) {
      for (Op& op : block.ops) {
        each_operand(block, op, [&](Role role, Operand& operand) {
          if (is_remote(role) && op.via == refs.type) use(operand.ref);
        });
      }
    });
  }
  std::sort(block.channels.begin(), block.channels.end(), [](auto& a, auto& b) { return a.type < b.type; });
  std::sort(block.remote_buffers.begin(), block.remote_buffers.end(),
            [](auto& a, auto& b) { return a.type < b.type; });
}

/// Returns the first use of each rank-level channel of a type, as its position in the order of blocks and
/// lists.
std::vector<uint32_t> first_uses(const Gpu& gpu, ChannelType type) {
  std::vector<uint32_t> first(gpu.channel_count(type), unused);
  uint32_t next = 0;
  for (const ThreadBlock& block : gpu.threadblocks) {
    if (const ChannelRefs* refs = block.channels_of(type)) {
      for (const uint32_t id : refs->ids) {
        if (id < first.size() && first[id] == unused) first[id] = next++;
      }
    }
  }
  return first;
}

/// Numbers the channels of one type by peer. Channels to one peer are numbered by their use at the lower of
/// the two ranks.
void order_channels(Plan& plan, ChannelType type) {
  // A link is the lower rank, the higher rank, and the channel's position among the channels of these two.
  using Link = std::tuple<uint32_t, uint32_t, uint32_t>;
  std::map<Link, uint32_t> use_of;
  std::vector<std::vector<Link>> links(plan.gpus.size());
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    const Gpu& gpu = plan.gpus[rank];
    const std::vector<uint32_t> uses = first_uses(gpu, type);
    std::map<uint32_t, uint32_t> seen;
    for (uint32_t id = 0; id < gpu.channel_count(type); ++id) {
      const uint32_t peer = uint32_t(gpu.peer(type, id));
      const Link link{std::min(rank, peer), std::max(rank, peer), seen[peer]++};
      links[rank].push_back(link);
      if (rank <= peer || !use_of.count(link)) use_of[link] = uses[id];
    }
  }
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    Gpu& gpu = plan.gpus[rank];
    std::vector<uint32_t> order(links[rank].size()), place(order.size()), peers(order.size());
    for (uint32_t id = 0; id < order.size(); ++id) order[id] = id;
    const auto key = [&](uint32_t id) {
      return std::tuple(gpu.peer(type, id), use_of[links[rank][id]], std::get<2>(links[rank][id]));
    };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    for (uint32_t at = 0; at < order.size(); ++at) {
      place[order[at]] = at;
      peers[at] = uint32_t(gpu.peer(type, order[at]));
    }
    uint32_t at = 0;
    for (ChannelRecord& record : gpu.channels) {
      if (record.type != type) continue;
      for (uint32_t& peer : record.connected_to) peer = peers[at++];
    }
    for (ThreadBlock& block : gpu.threadblocks) {
      for (ChannelRefs& refs : block.channels) {
        if (refs.type != type) continue;
        for (uint32_t& id : refs.ids) id = id < place.size() ? place[id] : id;
      }
    }
  }
}

void order_remote_buffers(Gpu& gpu) {
  std::vector<uint32_t> order(gpu.remote_buffers.size()), place(order.size());
  for (uint32_t id = 0; id < order.size(); ++id) order[id] = id;
  for (RemoteBuffer& remote : gpu.remote_buffers) std::sort(remote.access.begin(), remote.access.end());
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const RemoteBuffer &left = gpu.remote_buffers[a], &right = gpu.remote_buffers[b];
    return std::tuple(left.rank, left.buffer, left.access) <
           std::tuple(right.rank, right.buffer, right.access);
  });
  std::vector<RemoteBuffer> sorted;
  for (uint32_t at = 0; at < order.size(); ++at) {
    place[order[at]] = at;
    sorted.push_back(gpu.remote_buffers[order[at]]);
  }
  gpu.remote_buffers = std::move(sorted);
  for (ThreadBlock& block : gpu.threadblocks) {
    for (RemoteBufferRefs& refs : block.remote_buffers) {
      for (uint32_t& id : refs.ids) id = id < place.size() ? place[id] : id;
    }
  }
}

/// Renumbers the ids that operations name in one of two roles, by first use in the rank. Returns the old ids
/// in their new order.
std::vector<uint32_t> order_ids(Gpu& gpu, Role role, Role other, size_t count) {
  std::map<uint32_t, uint32_t> place;
  std::vector<uint32_t> order;
  for (ThreadBlock& block : gpu.threadblocks) {
    for (const Op& op : block.ops) {
      if (!info(op.code).has(role) && !info(op.code).has(other)) continue;
      for (uint32_t& id : std::span(block.ids).subspan(op.first_id, op.ids)) {
        if (id >= count) continue;
        const auto [entry, first] = place.try_emplace(id, uint32_t(order.size()));
        if (first) order.push_back(id);
        id = entry->second;
      }
    }
  }
  return order;
}

/// Renumbers semaphores; the unused ones come last.
void order_semaphores(Gpu& gpu) {
  std::vector<uint32_t> order = order_ids(gpu, Role::Acquire, Role::Release, gpu.semaphores.size());
  std::vector<int64_t> sorted;
  for (const uint32_t id : order) sorted.push_back(gpu.semaphores[id]);
  std::sort(order.begin(), order.end());
  for (uint32_t id = 0; id < gpu.semaphores.size(); ++id) {
    if (!std::binary_search(order.begin(), order.end(), id)) sorted.push_back(gpu.semaphores[id]);
  }
  gpu.semaphores = std::move(sorted);
}

}  // namespace

void canonicalise(Plan& plan) {
  for (Gpu& gpu : plan.gpus) {
    for (size_t position = 0; position < gpu.threadblocks.size(); ++position) {
      gpu.threadblocks[position].id = uint32_t(position);
      canonicalise_block(gpu.threadblocks[position]);
    }
    order_remote_buffers(gpu);
    order_semaphores(gpu);
    order_ids(gpu, Role::Arrive, Role::Arrive, unused);  // barriers have no list
    std::stable_sort(gpu.channels.begin(), gpu.channels.end(),
                     [](auto& a, auto& b) { return a.type < b.type; });
  }
  // This comes last because the order depends on the lists of the blocks, which are now in the order of use.
  for (const ChannelType type : signalled_types) order_channels(plan, type);
}

}  // namespace chorale::tools
