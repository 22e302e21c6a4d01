#include "accesses.hpp"

#include "chorale/collective.hpp"
#include "compiler/plan/resolve.hpp"

namespace chorale {
namespace {

/// For a plan in place, gives an access to input or output the coordinates of the memory that holds both.
void unite(const Plan& plan, const CollectiveInfo& collective, Access& access) {
  if (access.buffer == BufferKind::scratch) return;
  const BufferKind whole = collective.input_is_part() ? BufferKind::output : BufferKind::input;
  if (access.buffer == whole) return;
  if (collective.input_is_part() || collective.output_is_part()) {
    const uint64_t shift = access.rank * plan.gpus[access.rank].chunks[size_t(access.buffer)];
    access.begin += shift;
    access.end += shift;
  }
  access.buffer = whole;
}

}  // namespace

void list_accesses(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, const Op& op, bool everywhere,
                   std::vector<Access>& out) {
  const CollectiveInfo& collective = collective_info(plan.collective);
  for_each_place(plan, gpu, block, op,
                 [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                   if (operand.size == 0 || (!everywhere && rank != gpu.id)) return;
                   // Over a channel to itself, a rank accesses its own memory in the way a peer does.
                   if (!everywhere && is_remote(field.role)) return;
                   out.push_back({rank, buffer, is_packet(field.role), is_write(field.role), operand.index,
                                  operand.index + operand.size});
                   if (plan.inplace) unite(plan, collective, out.back());
                 });
}

bool overlap(const Access& left, const Access& right) {
  if (left.rank != right.rank || left.buffer != right.buffer) return false;
  const auto overlap = [](uint64_t begin, uint64_t end, uint64_t other_begin, uint64_t other_end) {
    return begin < other_end && other_begin < end;
  };
  if (overlap(left.begin, left.end, right.begin, right.end)) return true;
  if (left.packets == right.packets) return false;
  const Access& packets = left.packets ? left : right;
  const Access& plain = left.packets ? right : left;
  return overlap(2 * packets.begin, 2 * packets.end, plain.begin, plain.end);
}

}  // namespace chorale
