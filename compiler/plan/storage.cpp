#include "chorale/storage.hpp"

#include <algorithm>
#include <iterator>

#include "chorale/collective.hpp"
#include "resolve.hpp"

namespace chorale {

bool reached_by_peers(const Plan& plan, uint32_t rank, BufferKind kind) {
  for (const Gpu& gpu : plan.gpus) {
    for (const RemoteBuffer& remote : gpu.remote_buffers) {
      if (remote.rank == rank && remote.buffer == kind) return true;
    }
    for (uint32_t id = 0; id < gpu.channel_count(ChannelType::switched); ++id) {
      const SwitchGroup group = gpu.switch_group(id);
      if (group.buffer == kind && std::count(group.ranks->begin(), group.ranks->end(), rank)) return true;
    }
  }
  return false;
}

bool reached_by_peers(const Plan& plan, BufferKind kind) {
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (reached_by_peers(plan, rank, kind)) return true;
  }
  return false;
}

bool uses(const Plan& plan, uint32_t rank, BufferKind kind) {
  bool touched = reached_by_peers(plan, rank, kind);
  for_each_op(plan, rank, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace) {
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      touched |= !is_remote(field.role) && !is_switched(field.role) && operand.ref == uint32_t(kind);
    });
  });
  return touched;
}

// This uses only data that is also there in a plan loaded for this rank alone.
bool is_one_storage(const Plan& plan, uint32_t rank) {
  if (!plan.inplace) return false;
  if (collective_info(plan.collective).in_place == CollectiveInfo::InPlace::always) return true;
  const Segmentation segments = segmentation(plan);
  if (segments.input != segments.output) return false;
  bool any[2] = {false, false};
  for (const BufferKind kind : {BufferKind::input, BufferKind::output}) {
    for (const Gpu& gpu : plan.gpus) any[size_t(kind)] |= gpu.chunks[size_t(kind)] != 0;
  }
  // A custom collective may have no chunks in one buffer. That buffer is empty and so differs in size from
  // the other.
  if (!is_standard(plan.collective) && any[0] != any[1]) return false;
  return !uses(plan, rank, BufferKind::input) || !uses(plan, rank, BufferKind::output);
}

std::vector<bool> receivers(const Plan& plan, bool one_storage) {
  std::vector<bool> written[2];  // input, output
  for (std::vector<bool>& by_rank : written) by_rank.resize(plan.ranks());
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace) {
    for_each_place(plan, gpu, block, op,
                   [&](const Field& field, const Operand&, uint32_t rank, BufferKind buffer) {
                     if (is_write(field.role) && size_t(buffer) < std::size(written))
                       written[size_t(buffer)][rank] = true;
                   });
  });
  std::vector<bool> receives = written[size_t(BufferKind::output)];
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (written[size_t(BufferKind::input)][rank] && plan.inplace &&
        (one_storage || is_one_storage(plan, rank)))
      receives[rank] = true;
  }
  return receives;
}

}  // namespace chorale
