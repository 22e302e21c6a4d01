#include "storage.hpp"

#include "chorale/collective.hpp"

namespace chorale::proof {

Storage::Storage(const Plan& plan, bool one) : plan_(plan), segments_(segmentation(plan)) {
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank)
    one_.push_back(plan.inplace && (one || is_one_storage(plan, rank)));
  const CollectiveInfo& collective = collective_info(plan.collective);
  if (collective.input_is_part()) shifted_ = BufferKind::input;
  if (collective.output_is_part()) shifted_ = BufferKind::output;
}

uint64_t Storage::chunks(uint32_t rank, BufferKind kind) const {
  const uint64_t* own = plan_.gpus[rank].chunks;
  if (kind != BufferKind::output || own[size_t(kind)] || !plan_.inplace) return own[size_t(kind)];
  return own[size_t(BufferKind::input)] / segments_.input * segments_.output;
}

Storage::Place Storage::place(uint32_t rank, BufferKind kind, bool packets) const {
  const uint32_t first = rank * spaces_per_rank;
  if (packets) return {first + packet_space, 0};
  if (!one_[rank] || kind == BufferKind::scratch) return {first + uint32_t(kind), 0};
  return {first + uint32_t(BufferKind::output), kind == shifted_ ? rank * chunks(rank, kind) : 0};
}

}  // namespace chorale::proof
