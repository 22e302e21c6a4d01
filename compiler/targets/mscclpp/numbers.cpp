// This file checks chunk counts, bytes and alignments. What depends on the size of a message is checked for
// the largest one that the plan names, or else for one of 4 GiB. A plan for messages of any size is not
// refused because of offsets. From some size on, they do not fit into 32 bits, and largest_message() returns
// that size.

#include <algorithm>

#include "checks.hpp"
#include "chorale/collective.hpp"
#include "chorale/divided_up.hpp"

namespace chorale::mscclpp {

uint64_t message_chunks(const Plan& plan, const Gpu& gpu) {
  return gpu.chunks[size_t(collective_info(plan.collective).counts_output() ? BufferKind::output
                                                                            : BufferKind::input)];
}

uint64_t largest_chunk(const Plan& plan, const Gpu& gpu) {
  const uint64_t bytes = plan.max_message_size == UINT64_MAX ? max_bytes : plan.max_message_size;
  const uint64_t chunks = message_chunks(plan, gpu);
  return chunks ? divided_up(bytes, chunks) : 0;
}

uint64_t largest_message(const Plan& plan) {
  uint64_t least = max_bytes;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace) {
    const uint64_t chunks = std::min(message_chunks(plan, gpu), max_bytes);
    if (chunks == 0) return;
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      const uint64_t end = std::max<uint64_t>(operand.index + operand.size, 1);
      const uint64_t chunk = max_bytes / end / (is_packet(field.role) ? 2 : 1);
      least = std::min(least, chunk * chunks);
    });
  });
  return least;
}

void chunk_counts(const Plan& plan, Finder& find) {
  for (const Gpu& gpu : plan.gpus) {
    for (const BufferKind buffer : {BufferKind::input, BufferKind::output, BufferKind::scratch}) {
      const std::string name =
          "the " + std::string(buffer_names[size_t(buffer)]) + " of " + rank_name(gpu.id) + " has ";
      const std::string path = path_of("gpus", gpu.id, chunks_key(size_t(buffer)));
      const uint64_t chunks = gpu.chunks[size_t(buffer)];
      if (!chunks && buffer != BufferKind::scratch)
        find.add_at(path, name + "0 chunks, but MSCCL++ needs at least 1: it divides by their number");
      if (chunks > max_bytes)
        find.add_at(path, name + count(chunks, "chunk") + ", but MSCCL++ counts to " + number(max_bytes));
    }
  }
}

void message_sizes(const Plan& plan, Finder& find) {
  if (plan.min_message_size > max_int) {
    find.add_at("/min_message_size", "the smallest message has " + count(plan.min_message_size, "byte") +
                                         ", but MSCCL++ reads at most " + number(max_int));
  }
  if (plan.max_message_size == UINT64_MAX) return;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    const uint64_t bytes = largest_chunk(plan, gpu);
    if (!bytes) return;
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      const uint64_t each = is_packet(field.role) ? 2 * bytes : bytes;
      const uint64_t end = operand.index + operand.size;
      if (end <= max_bytes / each) return;
      find.add(at,
               std::string(field.name) + " of " + name_of(op) + " ends " + count(end, "chunk") + " of " +
                   count(each, "byte") + " into its buffer, but MSCCL++ counts to " + number(max_bytes) +
                   " bytes",
               "lower the largest message of the plan, " + count(plan.max_message_size, "byte"),
               operand_path(block, op, operand));
    });
  });
}

void alignment(const Plan& plan, Finder& find) {
  if (plan.buffer_alignment > max_int) {
    find.add_at("/buffer_alignment", "the buffer alignment is " + count(plan.buffer_alignment, "byte") +
                                         ", but MSCCL++ reads at most " + number(max_int));
  }
  if (plan.buffer_alignment % vector_bytes == 0) return;
  find.add_at("/buffer_alignment", "the buffer alignment is " + count(plan.buffer_alignment, "byte") +
                                       ", but MSCCL++ copies and reduces " + number(vector_bytes) +
                                       " bytes at a time, between places of equal remainder");
}

void turns(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (!shape(op.code).has(Role::Loop)) return;
    const uint64_t bytes = largest_chunk(plan, gpu);
    if (!bytes || !op.unit_bytes || !op.chunks) return;
    if (bytes <= max_turns * op.unit_bytes / op.chunks) return;
    find.add(at,
             "this pipeline takes more than " + number(max_turns) + " turns of " +
                 count(op.unit_bytes, "byte") + " for " + count(op.chunks, "chunk") + " of " +
                 count(bytes, "byte") + ", but MSCCL++ counts to " + number(max_turns),
             "use larger units, or lower the largest message of the plan");
  });
}

}  // namespace chorale::mscclpp
