// This file finds reductions that MSCCL++ computes wrongly, and operations that it does not know.

#include "checks.hpp"

namespace chorale::mscclpp {

void reduce_operator(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (!shape(op.code).has(Role::Reduce) || op.reduce_op == ReduceOp::sum) return;
    find.add(
        at,
        name_of(op) + " has the operator " + reduce_op_name(op.reduce_op) + ", but MSCCL++ computes a sum",
        {}, "reduce_op");
  });
}

void switch_reduce(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (op.code != Opcode::switch_reduce) return;
    find.add(at,
             "'switch_reduce' of " + count(block.sources(op)[0].size, "chunk") +
                 " is not followed by a broadcast that makes its result superfluous, but MSCCL++ has no "
                 "reduction without one",
             "broadcast the result over the same channel, right after it, and read it from there");
  });
}

void extensions(const Plan& plan, Finder& find) {
  if (plan.extension.schedule)
    find.add_at("/chorale/host", "the plan is a host schedule, but MSCCL++ runs thread blocks only");
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    const std::string_view via = channel_type_names[size_t(op.via)];
    if (is_extension(via)) {
      find.add(at, name_of(op) + " goes over a " + std::string(via) + " channel, and MSCCL++ has none");
    }
    if (!is_extension(info(op.code).mnemonic)) return;
    find.add(at, name_of(op) + " is an operation of ours, but MSCCL++ knows only its own",
             "compile the program for the target mscclpp");
  });
}

void codecs(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (!operand.codec) return;
      find.add(at, std::string(field.name) + " of " + name_of(op) + " is encoded, but MSCCL++ has no codecs",
               "send plain elements", operand_path(block, op, operand) + "/codec");
    });
  });
}

}  // namespace chorale::mscclpp
