// Scratch, and what MSCCL++ keeps from one call to the next.

#include "checks.hpp"

namespace chorale::mscclpp {

void packet_protocol(const Plan& plan, Finder& find) {
  if (plan.protocol == Protocol::LL) return;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    bool packets = false;
    for_each_operand(block, op,
                     [&](const Field& field, const Operand&) { packets |= is_packet(field.role); });
    if (!packets) return;
    find.add(at,
             name_of(op) +
                 " moves packets in the protocol Simple, but MSCCL++ then has room for half of the " +
                 count(gpu.chunks[size_t(BufferKind::scratch)], "chunk") + " of scratch",
             "give the program the protocol LL");
  });
}

void double_scratch(const Plan& plan, Finder& find) {
  if (!plan.use_double_scratch_buffer) return;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (is_packet(field.role)) return;
      bool wrong = false;
      if (is_remote(field.role)) {
        const RemoteBuffer* buffer = remote_buffer(gpu, block, op.via, operand.ref);
        wrong = buffer && buffer->buffer == BufferKind::scratch;
      } else if (is_switched(field.role)) {
        const SwitchGroup group = switch_group(gpu, block, operand.ref);
        wrong = group.ranks && group.buffer == BufferKind::scratch;
      } else {
        // The transfer engine reads for the thread block.
        wrong = op.via == ChannelType::port && BufferKind(operand.ref) == BufferKind::scratch;
      }
      if (!wrong) return;
      find.add(at,
               std::string(field.name) + " of " + name_of(op) + " is chunk " + number(operand.index) +
                   " of a double scratch buffer, but MSCCL++ takes the first half of it in every call",
               "send packets, or use a single scratch buffer", operand_path(block, op, operand));
    });
  });
}

void reused_addresses(const Plan& plan, Finder& find) {
  if (!plan.reuse_resources) return;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      BufferKind kind = BufferKind::scratch;
      if (is_remote(field.role)) {
        if (const RemoteBuffer* buffer = remote_buffer(gpu, block, op.via, operand.ref))
          kind = buffer->buffer;
      } else if (is_switched(field.role)) {
        kind = switch_group(gpu, block, operand.ref).buffer;
      }
      if (kind == BufferKind::scratch) return;
      find.add(at,
               std::string(field.name) + " of " + name_of(op) + " is chunk " + number(operand.index) +
                   " of a peer's " + std::string(buffer_names[size_t(kind)]) +
                   " with resources reused, but MSCCL++ then keeps the address of the first call",
               "exchange through scratch, or do not reuse resources", operand_path(block, op, operand));
    });
  });
}

}  // namespace chorale::mscclpp
