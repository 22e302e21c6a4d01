// This file finds what must not be in a pipeline.

#include "checks.hpp"

namespace chorale::mscclpp {
namespace {

template <class Visit>
void for_each_pipelined(const Plan& plan, Visit&& visit) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    if (loop) visit(block, op, *loop, at);
  });
}

}  // namespace

void pipeline_units(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (!shape(op.code).has(Role::Loop) || op.unit_bytes % vector_bytes == 0) return;
    find.add(at,
             "this pipeline goes on by units of " + count(op.unit_bytes, "byte") +
                 ", but MSCCL++ moves vectors of " + number(vector_bytes) +
                 " bytes and leaves out what is before the next one",
             "take units of a multiple of " + number(vector_bytes) + " bytes");
  });
}

// MSCCL++ subtracts the progress of earlier turns in all chunks of the pipeline from the rest of an operand,
// in unsigned 32-bit numbers.
void pipelined_operands(const Plan& plan, Finder& find) {
  for_each_pipelined(plan, [&](const ThreadBlock& block, const Op& op, const Op& loop, OpPlace at) {
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (operand.size >= loop.chunks) return;
      find.add(at,
               std::string(field.name) + " of " + name_of(op) + " is " + count(operand.size, "chunk") +
                   " in a pipeline over " + number(loop.chunks) +
                   ", but MSCCL++ goes on past the end of the operand",
               "give the pipeline as many chunks as the shortest operand in it",
               operand_path(block, op, operand));
    });
  });
}

void pipelined_groups(const Plan& plan, Finder& find) {
  for_each_pipelined(plan, [&](const ThreadBlock&, const Op& op, const Op&, OpPlace at) {
    if (op.group_size <= 1) return;
    find.add(at,
             name_of(op) + " of a pipeline is shared by " + count(op.group_size, "thread block") +
                 ", but MSCCL++ counts the turns of whole chunks and moves bytes after the slices",
             "give each thread block chunks of its own");
  });
}

void pipelined_packets(const Plan& plan, Finder& find) {
  for_each_pipelined(plan, [&](const ThreadBlock& block, const Op& op, const Op&, OpPlace at) {
    uint64_t chunks = 0;
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (is_packet(field.role)) chunks = std::max(chunks, operand.size);
    });
    if (!chunks) return;
    find.add(at, name_of(op) + " of a pipeline moves packets, but MSCCL++ moves all of its " +
                     count(chunks, "chunk") + " in every turn");
  });
}

void pipelined_scratch(const Plan& plan, Finder& find) {
  if (!plan.reuse_resources) return;
  for_each_pipelined(plan, [&](const ThreadBlock& block, const Op& op, const Op&, OpPlace at) {
    if (!shape(op.code).has(Role::Reduce)) return;
    bool scratch = false, other = false;
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (is_remote(field.role) || is_switched(field.role)) return;
      (BufferKind(operand.ref) == BufferKind::scratch ? scratch : other) = true;
    });
    if (!scratch || !other) return;
    find.add(at,
             name_of(op) +
                 " of a pipeline is between scratch and another buffer with resources reused, but MSCCL++ "
                 "wraps the offsets of all its operands as those of its destination");
  });
}

}  // namespace chorale::mscclpp
