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

// Scratch is then of one size whatever the message has. A chunk that is larger than its share wraps around in
// a pipeline, which was not proved, and elsewhere runs into the next one.
void reused_scratch(const Plan& plan, Finder& find) {
  if (!plan.reuse_resources) return;
  const uint64_t banks = plan.use_double_scratch_buffer ? 2 : 1;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    const uint64_t chunks = gpu.chunks[size_t(BufferKind::scratch)];
    if (!chunks) return;
    const uint64_t room = reused_scratch_bytes / banks;
    const uint64_t share = (room + chunks - 1) / chunks;
    const uint64_t aligned =
        (share + plan.buffer_alignment - 1) / plan.buffer_alignment * plan.buffer_alignment;
    const uint64_t largest = largest_chunk(plan, gpu);
    bool touches = false;
    for_each_place(plan, gpu, block, op, [&](const Field&, const Operand&, uint32_t, BufferKind buffer) {
      touches |= buffer == BufferKind::scratch;
    });
    if (!touches) return;
    const std::string help = "let the plan name a largest message with smaller chunks";
    const std::string shares = "MSCCL++ keeps " + count(room, "byte") + " of reused scratch, " +
                               count(aligned, "byte") + " for each of " + count(chunks, "chunk");
    if (largest > aligned) {
      find.add(at,
               name_of(op) + " is at scratch with chunks of up to " + count(largest, "byte") + ", but " +
                   shares +
                   (loop ? ", and goes round in them: nothing says that they have been read"
                         : ", and goes on in the next"),
               help);
    } else if (aligned * chunks > room && largest > room - aligned * (chunks - 1)) {
      find.add(at,
               name_of(op) + " is at scratch with chunks of up to " + count(largest, "byte") + ", but " +
                   shares + ", which are aligned beyond its end",
               help);
    }
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
